"""Words by which a CUDA source depends on where, when or as what NVRTC compiles it.

NVRTC shows no preprocessed text, and takes no other value for such a macro. A source that could use one is
compiled to PTX twice more, at two places where all of them have another value: once large numbers and long
names, once small and short ones. No word counts if the PTX is the same three times. What is timed is
compiled as it always is.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warpsmith.backends.base import CompileRequest, CompileWay
from warpsmith.backends.cuda_nvrtc import HEADERS, for_nvrtc, ptx_of
from warpsmith.backends.cuda_toolkit import toolkit_includes
from warpsmith.backends.elsewhere import WORDS, Place, of_no_place
from warpsmith.backends.nvrtc_elsewhere import Asked, OtherClock, now
from warpsmith.backends.telling_filter import included, may_tell
from warpsmith.backends.telling_words import ASKING
from warpsmith.backends.throw_away_fork import End, begin

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


def telling(request: CompileRequest, way: CompileWay, ptx: str) -> tuple[str, ...]:
    """The telling words of a source that NVRTC has compiled, in the names of `telling_words.WORDS`.

    Args:
        request: what was compiled, in this working folder.
        way: how.
        ptx: what was assembled.
    """
    texts = (*request.options, request.source, *request.headers)
    if not may_tell(texts) and not _includes_others(request):
        return ()
    usual = now()
    # Line tables name places, and nothing but them.
    plain = replace(request, options=tuple(o for o in request.options if o != _LINE_TABLE))

    def look(place: Place) -> Callable[[], Seen]:
        wait = begin(lambda end: _compile(plain, way, place, usual, end))

        def seen() -> Seen:
            found, text = wait()
            if not found:
                return Seen()
            fields = json.loads(text)
            return Seen(fields["ptx"], tuple(fields["told"]))

        return seen

    return told(ptx if plain == request else None, look)


def told(plain: str | None, look: Look) -> tuple[str, ...]:
    """The words that count.

    Args:
        plain: PTX of the source where it is timed; None: it is compiled there once more.
        look: compiles the source at a place.
    """
    begun = [(place, look(place)) for place in _places(WORDS)]
    plain = look(Place())().ptx if plain is None else plain
    seen = [(place, wait()) for place, wait in begun]
    always = tuple(dict.fromkeys(word for _, found in seen for word in found.told))
    if all(_is_same(plain, found, place) for place, found in seen):
        return always
    # Of a source with a date, what was timed has an earlier one.
    dated = look(Place())().ptx
    alone = tuple(word for word in WORDS if _matters(word, dated, look))
    return tuple(dict.fromkeys((*(alone or WORDS), *always)))


def _places(words: Sequence[str]) -> tuple[Place, Place]:
    return Place(tuple(words)), Place(tuple(words), is_low=True)


def _matters(word: str, plain: str | None, look: Look) -> bool:
    begun = [(place, look(place)) for place in _places((word,))]
    seen = [(place, wait()) for place, wait in begun]
    return not all(_is_same(plain, found, place) for place, found in seen)


def _is_same(plain: str | None, found: Seen, place: Place) -> bool:
    return (
        plain is not None
        and found.ptx is not None
        and of_no_place(plain, Place()) == of_no_place(found.ptx, place)
    )


def _compile(request: CompileRequest, way: CompileWay, place: Place, usual: str, end: End) -> None:
    """Compile in this process, which is a fork, and end it."""
    asked, clock = Asked(), OtherClock(place.clock(usual))
    has_clock = clock.set()
    asked.watch()
    folder = Path.cwd()
    source, name = place.text(for_nvrtc(request.source, request.options)), place.name(str(folder))
    if place.is_included:
        file = folder / f"{place.token}.in"
        file.write_text(f'#line 1 "{name}"\n{source}')
        source = f'#include "{file}"\n'
    ptx = ptx_of(request, way, source, name)
    texts = " ".join((request.source, *request.headers))
    folders = (folder, *request.include_dirs, HEADERS, *toolkit_includes())
    # A file that the toolkit asks for itself is there or not for everybody.
    asks = asked.outside(folders) or any(missing in texts for missing in asked.missing() - {Path(name).name})
    if not asked.is_seen:
        asks = ASKING[0] in texts
    dates = () if has_clock else tuple(_DATES.findall(texts))
    end(json.dumps(asdict(Seen(ptx, (*dates, *(ASKING[:1] if asks else ()))))), True)


def _includes_others(request: CompileRequest) -> bool:
    """Whether the job's texts include files that are neither the job's nor the toolkit's."""
    folder = Path.cwd()
    others = [d for d in request.include_dirs if not d.is_relative_to(folder)]
    own = [sub for d in request.include_dirs if d not in others for sub in (d, *d.rglob("*/"))]
    for name in included((request.source, *request.headers)):
        if not name or name.startswith("/") or any((d / name).is_file() for d in others):
            return True
        up = [d / name for d in (folder, *own)] if ".." in name else []
        if any(file.is_file() and not file.resolve().is_relative_to(folder.resolve()) for file in up):
            return True
    return False
