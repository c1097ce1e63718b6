"""Environment probes of CUDA sources, found by comparing PTX of three compile sites.

NVRTC shows no preprocessed text, and takes no other value for such a macro. A source that could use one is
compiled to PTX twice more, at two places where all of them have another value: once large numbers and long
names, once small and short ones. No word counts if the PTX is the same three times. What is timed is
compiled as it always is.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warpsmith.backends.base import PACKAGE, CompileRequest, CompileWay
from warpsmith.backends.binaries.ptx_reach import reached
from warpsmith.backends.cuda.nvcc import ptx_by_nvcc, with_marks
from warpsmith.backends.cuda.nvrtc import HEADERS, for_nvrtc, ptx_of
from warpsmith.backends.cuda.toolkit import toolkit_includes
from warpsmith.backends.probes.compile_sites import NAME, NVCC_PROBES, PROBES, CompileSite, without_site
from warpsmith.backends.probes.nvrtc_sites import AskedFiles, OtherClock, now
from warpsmith.backends.probes.preprocessor_probes import FILE_PROBES
from warpsmith.backends.probes.text_filter import included, may_probe
from warpsmith.backends.probes.throw_away_fork import begin
from warpsmith.domain.source_text import code_of

_LINE_TABLE = "-lineinfo"
_DATES = re.compile(r"__(?:DATE|TIME)__")


@dataclass(frozen=True)
class SitePtx:
    """PTX of a source at a compile site."""

    ptx: str | None = None
    """PTX text; None if the source did not compile."""
    told: tuple[str, ...] = ()
    """Probes that count whatever the PTX is."""


Look = Callable[[CompileSite], Callable[[], SitePtx]]
"""Begins to compile at a place, and returns what waits for it."""


def may_depend(request: CompileRequest) -> bool:
    """True if a source could depend on an environment probe, by its text and the files that it includes."""
    texts = (*request.options, request.source, *request.headers)
    return may_probe(texts) or _includes_others(request)


def environment_probes(request: CompileRequest, way: CompileWay, ptx: str) -> tuple[str, ...]:
    """The environment probes of a source that was compiled, in the names of `preprocessor_probes.PROBES`.

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

    def compile_at(place: CompileSite) -> SitePtx:
        return _by_nvcc(plain, place) if is_nvcc else _by_nvrtc(plain, way, place, usual)

    def look(place: CompileSite) -> Callable[[], SitePtx]:
        wait = begin(lambda end: end(json.dumps(asdict(compile_at(place))), True))

        def seen() -> SitePtx:
            found, text = wait()
            if not found:
                return SitePtx()
            fields = json.loads(text)
            return SitePtx(fields["ptx"], tuple(fields["told"]))

        return seen

    words = (*PROBES, *NVCC_PROBES) if is_nvcc else PROBES
    return effective_probes(ptx if plain == request and ptx else None, look, words)


def effective_probes(plain: str | None, look: Look, words: tuple[str, ...] = PROBES) -> tuple[str, ...]:
    """The probes on which a source depends.

    Args:
        plain: PTX of the source where it is timed; None: it is compiled there once more.
        look: compiles the source at a place.
        words: what a place may change.
    """
    begun = [(place, look(place)) for place in _places(words)]
    plain = look(CompileSite())().ptx if plain is None else plain
    seen = [(place, wait()) for place, wait in begun]
    always = tuple(dict.fromkeys(word for _, found in seen for word in found.told))
    if all(_is_same(plain, found, place) for place, found in seen):
        return always
    # Of a source with a date, what was timed has an earlier one.
    dated = look(CompileSite())().ptx
    alone = tuple(word for word in words if _matters(word, dated, look))
    return tuple(dict.fromkeys((*(alone or words), *always)))


def _places(words: tuple[str, ...]) -> tuple[CompileSite, CompileSite]:
    return CompileSite(words), CompileSite(words, is_low=True)


def _matters(word: str, plain: str | None, look: Look) -> bool:
    begun = [(place, look(place)) for place in _places((word,))]
    seen = [(place, wait()) for place, wait in begun]
    return not all(_is_same(plain, found, place) for place, found in seen)


def _is_same(plain: str | None, found: SitePtx, place: CompileSite) -> bool:
    return (
        plain is not None
        and found.ptx is not None
        and without_site(reached(plain), CompileSite()) == without_site(reached(found.ptx), place)
    )


def _by_nvrtc(request: CompileRequest, way: CompileWay, place: CompileSite, usual: str) -> SitePtx:
    """Compiles the source with NVRTC at a site; for a process that does nothing else afterwards."""
    asked, clock = AskedFiles(), OtherClock(place.clock(usual))
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
        asks = FILE_PROBES[0] in texts
    dates = () if has_clock else tuple(_DATES.findall(texts))
    return SitePtx(ptx, (*dates, *(FILE_PROBES[:1] if asks else ())))


def _by_nvcc(request: CompileRequest, place: CompileSite) -> SitePtx:
    """Compiles the source with nvcc at a site; for a process that does nothing else afterwards."""
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
    asks = FILE_PROBES[:1] if FILE_PROBES[0] in texts else ()
    return SitePtx(ptx_by_nvcc(request, name), asks)


def _included(place: CompileSite, source: str, name: str) -> str:
    """The source, or one that includes a file with it."""
    if not place.is_included:
        return source
    file = Path(f"{place.token}.in").resolve()
    file.write_text(f'#line 1 "{name}"\n{source}')
    return f'#include "{file}"\n'


def _includes_others(request: CompileRequest) -> bool:
    """True if the job's texts include files that are neither the job's nor the toolkit's."""
    folder = Path.cwd()
    given = [d for d in request.include_dirs if not d.is_relative_to(PACKAGE)]
    others = [d for d in given if not d.is_relative_to(folder)]
    own = [sub for d in given if d not in others for sub in (d, *d.rglob("*/"))]
    return any(
        _is_elsewhere(name, others) or _leads_out(name, folder, own)
        for name in included((request.source, *request.headers))
    )


def _is_elsewhere(name: str, others: Sequence[Path]) -> bool:
    return not name or name.startswith("/") or any((d / name).is_file() for d in others)


def _leads_out(name: str, folder: Path, own: Sequence[Path]) -> bool:
    up = [d / name for d in (folder, *own)] if ".." in name else []
    return any(file.is_file() and not file.resolve().is_relative_to(folder.resolve()) for file in up)
