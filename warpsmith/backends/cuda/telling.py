"""Words by which a CUDA source depends on where, when or as what it is compiled.

NVRTC shows no preprocessed text, and takes no other value for such a macro. A source that could use one is
compiled to PTX twice more, at two places where all of them have another value: once large numbers and long
names, once small and short ones. No word counts if the PTX is the same three times. What is timed is
compiled as it always is.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warpsmith.backends.base import PACKAGE, CompileRequest, CompileWay
from warpsmith.backends.binaries.ptx_reach import reached
from warpsmith.backends.cuda.nvcc import ptx_by_nvcc, with_marks
from warpsmith.backends.cuda.nvrtc import HEADERS, for_nvrtc, ptx_of
from warpsmith.backends.cuda.toolkit import toolkit_includes
from warpsmith.backends.telling.elsewhere import MORE_WORDS, NAME, WORDS, Place, of_no_place
from warpsmith.backends.telling.filter import included, may_tell
from warpsmith.backends.telling.nvrtc_elsewhere import Asked, OtherClock, now
from warpsmith.backends.telling.throw_away_fork import begin
from warpsmith.backends.telling.words import ASKING
from warpsmith.domain.source_text import code_of

_LINE_TABLE = "-lineinfo"
_DATES = re.compile(r"__(?:DATE|TIME)__")


@dataclass(frozen=True)
class Seen:
    """What a compiler made of a source at a place."""

    ptx: str | None = None
    """None: it did not compile."""
    told: tuple[str, ...] = ()
    """Words that count whatever the PTX is."""


Look = Callable[[Place], Callable[[], Seen]]
"""Begins to compile at a place, and returns what waits for it."""


def may_depend(request: CompileRequest) -> bool:
    """Whether a source could depend on a telling word, by its text and the files that it includes."""
    texts = (*request.options, request.source, *request.headers)
    return may_tell(texts) or _includes_others(request)


def telling(request: CompileRequest, way: CompileWay, ptx: str) -> tuple[str, ...]:
    """The telling words of a source that was compiled, in the names of `telling.words.WORDS`.

    Args:
        request: what was compiled, in this working folder.
        way: how.
        ptx: what was assembled.
    """
    if not may_depend(request):
        return ()
    usual, is_nvcc = now(), way is CompileWay.NVCC
    # Line tables name places, and nothing but them.
    plain = replace(request, options=tuple(o for o in request.options if o != _LINE_TABLE))

    def compile_at(place: Place) -> Seen:
        return _by_nvcc(plain, place) if is_nvcc else _by_nvrtc(plain, way, place, usual)

    def look(place: Place) -> Callable[[], Seen]:
        wait = begin(lambda end: end(json.dumps(asdict(compile_at(place))), True))

        def seen() -> Seen:
            found, text = wait()
            if not found:
                return Seen()
            fields = json.loads(text)
            return Seen(fields["ptx"], tuple(fields["told"]))

        return seen

    words = (*WORDS, *MORE_WORDS) if is_nvcc else WORDS
    return told(ptx if plain == request and ptx else None, look, words)


def told(plain: str | None, look: Look, words: tuple[str, ...] = WORDS) -> tuple[str, ...]:
    """The words that count.

    Args:
        plain: PTX of the source where it is timed; None: it is compiled there once more.
        look: compiles the source at a place.
        words: what a place may change.
    """
    begun = [(place, look(place)) for place in _places(words)]
    plain = look(Place())().ptx if plain is None else plain
    seen = [(place, wait()) for place, wait in begun]
    always = tuple(dict.fromkeys(word for _, found in seen for word in found.told))
    if all(_is_same(plain, found, place) for place, found in seen):
        return always
    # Of a source with a date, what was timed has an earlier one.
    dated = look(Place())().ptx
    alone = tuple(word for word in words if _matters(word, dated, look))
    return tuple(dict.fromkeys((*(alone or words), *always)))


def _places(words: tuple[str, ...]) -> tuple[Place, Place]:
    return Place(words), Place(words, is_low=True)


def _matters(word: str, plain: str | None, look: Look) -> bool:
    begun = [(place, look(place)) for place in _places((word,))]
    seen = [(place, wait()) for place, wait in begun]
    return not all(_is_same(plain, found, place) for place, found in seen)


def _is_same(plain: str | None, found: Seen, place: Place) -> bool:
    return (
        plain is not None
        and found.ptx is not None
        and of_no_place(reached(plain), Place()) == of_no_place(reached(found.ptx), place)
    )


def _by_nvrtc(request: CompileRequest, way: CompileWay, place: Place, usual: str) -> Seen:
    """What NVRTC makes of the source; for a process that does nothing else afterwards."""
    asked, clock = Asked(), OtherClock(place.clock(usual))
    has_clock = clock.set()
    asked.watch()
    folder = Path.cwd()
    name = place.name(str(folder))
    source = _included(place, place.text(for_nvrtc(request.source, request.options)), name)
    ptx = ptx_of(request, way, source, name)
    texts = " ".join((request.source, *request.headers))
    folders = (folder, *request.include_dirs, HEADERS, *toolkit_includes())
    # A file that the toolkit asks for itself is there or not for everybody.
    asks = asked.outside(folders) or any(missing in texts for missing in asked.missing() - {Path(name).name})
    if not asked.is_seen:
        asks = ASKING[0] in texts
    dates = () if has_clock else tuple(_DATES.findall(texts))
    return Seen(ptx, (*dates, *(ASKING[:1] if asks else ())))


def _by_nvcc(request: CompileRequest, place: Place) -> Seen:
    """What nvcc makes of the source; for a process that does nothing else afterwards."""
    name = place.name(str(Path.cwd()))
    source = _included(place, place.defined(place.text(with_marks(request))), name)
    file = Path.cwd() / place.token
    if name == NAME:
        # A file of the usual name is there already.
        file.mkdir()
        os.chdir(file)
        file = file / NAME
    file.write_text(source)
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    texts = " ".join(code_of(text, characters=False) for text in (request.source, *request.headers))
    asks = ASKING[:1] if ASKING[0] in texts else ()
    return Seen(ptx_by_nvcc(request, name), asks)


def _included(place: Place, source: str, name: str) -> str:
    """The source, or one that includes a file with it."""
    if not place.is_included:
        return source
    file = Path(f"{place.token}.in").resolve()
    file.write_text(f'#line 1 "{name}"\n{source}')
    return f'#include "{file}"\n'


def _includes_others(request: CompileRequest) -> bool:
    """Whether the job's texts include files that are neither the job's nor the toolkit's."""
    folder = Path.cwd()
    given = [d for d in request.include_dirs if not d.is_relative_to(PACKAGE)]
    others = [d for d in given if not d.is_relative_to(folder)]
    own = [sub for d in given if d not in others for sub in (d, *d.rglob("*/"))]
    for name in included((request.source, *request.headers)):
        if not name or name.startswith("/") or any((d / name).is_file() for d in others):
            return True
        up = [d / name for d in (folder, *own)] if ".." in name else []
        if any(file.is_file() and not file.resolve().is_relative_to(folder.resolve()) for file in up):
            return True
    return False
