"""The launch and the shapes of buffers, derived from a kernel's own indices."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import FUNCTIONS, Expression
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.scaffold.guesses import dimension_name
from warpsmith.extensions.scaffold.indices.derived_launch import (
    USUAL,
    AxisExtent,
    DerivedLaunch,
    block_of_places,
    block_of_tiles,
    extents,
    kinds_of,
    shared_arrays,
)
from warpsmith.extensions.scaffold.indices.expanded_macros import expanded
from warpsmith.extensions.scaffold.indices.free_arguments import free_arguments
from warpsmith.extensions.scaffold.indices.guards import Guard, Guards
from warpsmith.extensions.scaffold.indices.largest import Largest
from warpsmith.extensions.scaffold.indices.places import BufferUse, places
from warpsmith.extensions.scaffold.indices.polynomials import Polynomial, Unknown, without
from warpsmith.extensions.scaffold.indices.values import BLOCKS, VARYING, IndexValues, is_whole
from warpsmith.source.declarations.named_constants import find_constants, integer_value
from warpsmith.source.tree.syntax_tree import Source, Variable, find
from warpsmith.source.tree.work_limit import TooMuchWork, limited_work

STEPS = 1_500_000
"""Limit on the work for one kernel: about a second."""
_LONGEST = 300
"""Characters of an extent; a longer one is no help to a reader."""
_INVENTED = 1024
_TRIED = (1, 15, 16, 63, 64, 100, 257, 1024)


GRID, BLOCK = "the grid", "the block"
"""Keys of the launch's facts beside those of buffers; no buffer has such a name."""
_ANY_SIZE = "any size is right"


@dataclass(frozen=True)
class SourceContext:
    """Macros, headers and limits that a compiler is given besides a kernel's text."""

    block: tuple[int, ...] = ()
    """Threads of a block along x, y, z, if the source fixes them."""
    threads: int = 0
    """Most threads of a block that the source allows; 0: it does not say."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Names with a fixed value, such as template parameters."""
    defines: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexSpace:
    """Launch, shapes and uses of buffers as a kernel's text shows them."""

    grid: tuple[str, ...] = ()
    """Blocks along x, y, z, as expressions over dimensions; empty: nothing is known."""
    block: tuple[str, ...] = ()
    """Threads of a block along x, y, z."""
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extents in elements of the argument's type, as expressions over dimensions, outermost first."""
    sure: frozenset[str] = frozenset()
    """`GRID`, `BLOCK` and names of buffers whose facts are derived and not guessed."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """A few words for each of them."""
    dimensions: Mapping[str, int] = field(default_factory=dict)
    """Dimensions that no argument holds, with placeholder sizes."""
    indirect: frozenset[str] = frozenset()
    """Arguments whose elements decide what else is used."""

    usage: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    """Pairs (is read, is written) of the buffers in `sure`."""
    free: frozenset[str] = frozenset()
    """Scalars that decide neither a branch nor an index."""
    shared_bytes: str = ""
    """Dynamic shared memory, as an expression; empty: unknown."""

    @property
    def named(self) -> frozenset[str]:
        """Names in the grid and in the shapes."""
        texts = (*self.grid, *(e for shape in self.shapes.values() for e in shape))
        return frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))


def index_space(text: str, backend: Backend, entry: str, around: SourceContext | None = None) -> IndexSpace:
    """The index space of a kernel; an empty one for a source that says nothing.

    Scalar arguments are assumed to be 1 or more.

    Args:
        entry: the kernel's plain name.
    """
    around = around or SourceContext()
    try:
        with limited_work(STEPS):
            plain = expanded(text, around.headers, around.defines)
            facts = Facts(Source(plain, backend, entry), ("", "", ""), entry)
            return _SpaceDerivation(
                facts, around, backend.language.is_opencl_c, _numbers(text, around)
            ).found()
    except (LookupError, RecursionError, TooMuchWork, Unknown):
        return IndexSpace()


def _numbers(text: str, around: SourceContext) -> dict[str, int]:
    found = {c.name: c.value for t in (*around.headers, text) for c in find_constants(t)}
    given = {n: integer_value(v, {}) for n, v in around.defines.items()}
    return found | dict(around.numbers) | {n: v for n, v in given.items() if v is not None}


def _is_of_block(index: Polynomial, block: tuple[int, ...]) -> bool:
    """True if an index has a thread's place in its block without that of the block in the grid."""
    terms = dict(index.terms)
    return any(
        terms.get((f"$bid.{axis}",), 0) != terms[(f"$tid.{axis}",)] * extent
        for axis, extent in zip(AXES, block, strict=True)
        if (f"$tid.{axis}",) in terms
    )


class _SpaceDerivation:
    def __init__(self, facts: Facts, around: SourceContext, opencl: bool, numbers: Mapping[str, int]) -> None:
        self._facts = facts
        self._around = around
        self._opencl = opencl
        self._numbers = numbers
        self._parameters = [v for v in facts.source.variables if v.is_parameter and _belongs(facts, v)]

    def found(self) -> IndexSpace:
        kinds = kinds_of(self._facts)
        count = self._axes(kinds)
        shown, block_sure, words = self._block(count, kinds)
        block = (*shown, 1, 1)[:3]
        values = IndexValues(self._facts, block, self._numbers)
        uses, unclear = self._uses(values)
        local = min((place.buffer for place, _ in uses if _is_of_block(place.index, block)), default="")
        if words == _ANY_SIZE and local:
            block_sure, words = False, f"a usual size; {local} is indexed by the place in the block"
        derived = DerivedLaunch(extents(values, uses, kinds, count, *self._scalars()), block)
        grid = tuple(_blocks(values, e, b) for e, b in zip(derived.axes, derived.block, strict=False))
        names = _names_of_blocks(derived)
        shapes, sure, reasons = self._shapes(uses, Largest(values, names), grid, unclear)
        sure |= {GRID} if derived.is_sure else set()
        sure |= {BLOCK} if block_sure else set()
        reasons |= {GRID: "; ".join(dict.fromkeys(e.reason for e in derived.axes)), BLOCK: words}
        invented = {n: _INVENTED for e in derived.axes if e.is_invented for n in e.size.names}
        grid_text = tuple(self._text(g) for g in grid)
        return IndexSpace(
            grid_text,
            tuple(map(str, shown)),
            shapes,
            frozenset(sure),
            reasons,
            invented,
            frozenset(values.indirect),
            {n: _usage(n, uses) for n in shapes if n in sure},
            free_arguments(self._facts),
        )

    def _axes(self, kinds: Mapping[str, set[str]]) -> int:
        """Axes that the kernel or its block uses."""
        used = [n for n, axis in enumerate(AXES) if kinds[axis]]
        return max(used[-1] + 1 if used else 1, len([b for b in self._around.block if b != 1]))

    def _scalars(self) -> tuple[list[str], list[str]]:
        """Whole-number arguments that the body does not name, and all of them."""
        named = {self._facts.source.of(n) for n in find(self._facts.source.body, "identifier")}
        scalars = [v.name for v in self._parameters if is_whole(v)]
        return [s for s in scalars if s not in named], scalars

    def _block(self, count: int, kinds: Mapping[str, set[str]]) -> tuple[tuple[int, ...], bool, str]:
        """Extents of the block, whether they are sure, and why."""
        if self._around.block:
            return self._around.block, True, "the source says so"
        usual = _usual(self._opencl, count, self._around.threads)
        first = IndexValues(self._facts, (*usual, 1, 1)[:3], self._numbers)
        tiles = block_of_tiles(first, count)
        shared = sorted({v.name for v in shared_arrays(self._facts)})
        if not tiles and not self._around.threads:
            tiles = block_of_places([p for p in places(first) if isinstance(p, BufferUse)], kinds, count)
            if tiles:
                block = tuple(tiles.get(n, 1) for n in range(count))
                return block, len(tiles) == 1 == count, "as the kernel counts its blocks"
        if not tiles:
            words = "a usual size; arrays in local memory may ask for another" if shared else _ANY_SIZE
            return usual, not shared, words
        block = tuple(tiles.get(n, 1) for n in range(count))
        return block, True, f"from the size of {', '.join(shared[:3])}"

    def _uses(self, values: IndexValues) -> tuple[list[tuple[BufferUse, list[Guard]]], set[str]]:
        guards = Guards(values)
        uses: list[tuple[BufferUse, list[Guard]]] = []
        unclear: set[str] = set()
        for found in places(values):
            if isinstance(found, BufferUse):
                uses.append((found, guards.at(found.node)))
            else:
                unclear.add(found[0])
        if "" in unclear:
            unclear |= {v.name for v in self._parameters if v.is_pointer or v.is_array}
        return uses, unclear

    def _shapes(
        self,
        uses: Sequence[tuple[BufferUse, list[Guard]]],
        largest: Largest,
        grid: Sequence[Polynomial],
        unclear: set[str],
    ) -> tuple[dict[str, tuple[str, ...]], set[str], dict[str, str]]:
        ends, endless = _ends(uses, largest)
        broken = unclear | endless
        shapes: dict[str, tuple[str, ...]] = {}
        sure: set[str] = set()
        reasons: dict[str, str] = {}
        for name, found in ends.items():
            different = list(dict.fromkeys(e for e, _ in found))
            try:
                end = largest.larger(different)
            except Unknown:
                # Two at most are compared by the job itself; the rest is too much to read.
                broken.add(name)
                if len(different) == 2 and name not in unclear:
                    texts = [self._text(_with_grid(e, grid)) for e in different]
                    shapes[name] = (f"max({', '.join(texts)})",)
                continue
            place = next(p for e, p in found if e == end)
            shape = self._shape(largest, _with_grid(end, grid), _with_grid(place.index, grid))
            if name in broken or any(len(e) > _LONGEST or e.startswith("-") or e == "0" for e in shape):
                broken.add(name)
                continue
            shapes[name], reasons[name] = shape, f"from the index `{place.words}`"
            sure.add(name)
        return shapes, sure - broken, reasons

    def _shape(self, largest: Largest, end: Polynomial, index: Polynomial) -> tuple[str, ...]:
        """Extents that hold as many elements, outermost first."""
        parts = _split(end, index)
        whole = largest.exact(end)
        if whole == end:
            return tuple(map(self._text, parts))
        rounding = {
            a: d.constant or 1
            for name, (a, d) in largest.values.quotients.items()
            if name in end.names and name.startswith("ceil_div")
        }
        shape = tuple(
            f"round_up({self._text(p)}, {rounding[p]})" if p in rounding else self._text(p)
            for p in _split(whole, largest.exact(index))
        )
        return shape if _holds(shape, self._text(end)) else tuple(map(self._text, parts))

    def _text(self, p: Polynomial) -> str:
        """The value as an expression over dimensions."""
        return re.sub(r"[A-Za-z_]\w*", lambda m: dimension_name(m.group()), p.text())


def _names_of_blocks(launch: DerivedLaunch) -> dict[str, tuple[Polynomial, int]]:
    """Extent of each axis and the threads that a unit of it has, by the name of its number of blocks."""
    return {
        f"{BLOCKS}{AXES[n]}": (e.size, 1 if e.in_blocks else launch.block[n])
        for n, e in enumerate(launch.axes)
    }


def _ends(
    uses: Sequence[tuple[BufferUse, list[Guard]]], largest: Largest
) -> tuple[dict[str, list[tuple[Polynomial, BufferUse]]], set[str]]:
    """Elements that uses of a buffer need at least, by its name, and the buffers with a use without bound."""
    ends: dict[str, list[tuple[Polynomial, BufferUse]]] = {}
    endless: set[str] = set()
    for place, guards in uses:
        try:
            end = largest.of(place.index, guards) + Polynomial.number(1)
        except Unknown:
            endless.add(place.buffer)
            continue
        ends.setdefault(place.buffer, []).append((end, place))
    return ends, endless


def _usage(name: str, uses: Sequence[tuple[BufferUse, list[Guard]]]) -> tuple[bool, bool]:
    own = [place for place, _ in uses if place.buffer == name]
    return any(p.reads for p in own), any(p.writes for p in own)


def _holds(shape: Sequence[str], end: str) -> bool:
    """True if extents have that many elements, for sizes on both sides of a multiple of usual blocks."""
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", " ".join((*shape, end))))
    names = [n for n in words if n not in FUNCTIONS]
    try:
        have, need = (Expression(" * ".join(f"({e})" for e in s)) for s in (shape, (end,)))
        for turn in range(len(_TRIED) ** min(len(names), 3)):
            sizes = {n: _TRIED[turn // len(_TRIED) ** min(k, 2) % len(_TRIED)] for k, n in enumerate(names)}
            if int(have.evaluate(sizes)) < int(need.evaluate(sizes)):
                return False
    except ExpressionError:
        return False
    return True


def _belongs(facts: Facts, v: Variable) -> bool:
    kernel = facts.source.kernel
    return kernel.start_byte <= v.declaration.start_byte < facts.source.body.start_byte


def _usual(opencl: bool, count: int, threads: int) -> tuple[int, ...]:
    if not threads:
        return USUAL[opencl][count - 1]
    rows = 1 if count == 1 else next(n for n in (8, 4, 2, 1) if threads % n == 0)
    return (threads // rows, rows, 1)[:count]


def _blocks(values: IndexValues, extent: AxisExtent, threads: int) -> Polynomial:
    """The number of blocks along an axis."""
    if extent.in_blocks or threads == 1:
        return extent.size
    return values.rounded(extent.size, threads)


def _with_grid(p: Polynomial, grid: Sequence[Polynomial]) -> Polynomial:
    """The value with the number of blocks in the place of its name."""
    for n, blocks in enumerate(grid):
        name = f"{BLOCKS}{AXES[n]}"
        if name in p.names:
            p = p.substituted(name, blocks)
        inner = dict(p.terms)
        if any(name in x for m in inner for x in m):
            is_name = len(blocks.terms) == 1 and len(blocks.terms[0][0]) == 1
            text = blocks.text() if is_name else f"({blocks.text()})"
            p = Polynomial.of({tuple(sorted(x.replace(name, text) for x in m)): c for m, c in inner.items()})
    return p


def _split(end: Polynomial, index: Polynomial) -> list[Polynomial]:
    """Extents, outermost first, if the index goes through the buffer in rows; else the whole."""
    if len(end.terms) != 1:
        return [end]
    steps = set()
    for m, _ in index.terms:
        sizes = tuple(x for x in m if x[0] != VARYING)
        if len(sizes) < len(m) and sizes:
            steps.add(sizes)
    extents_found, rest = [], end
    for step in sorted(steps, key=len, reverse=True):
        outer = rest.divided(Polynomial.of({step: 1}))
        if outer is None or outer.constant == 1:
            continue
        if any(without(step, s) is None and without(s, step) is None for s in steps):
            return [end]
        extents_found.append(outer)
        rest = Polynomial.of({step: 1})
    return [*extents_found, rest]
