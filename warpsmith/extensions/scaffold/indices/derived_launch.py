"""The launch that a kernel's text asks for: blocks from tiles, extents from bounds of its coordinates."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.operations import element_of
from warpsmith.extensions.scaffold.indices.guards import Guard
from warpsmith.extensions.scaffold.indices.largest import Largest, is_size
from warpsmith.extensions.scaffold.indices.places import BufferUse
from warpsmith.extensions.scaffold.indices.polynomials import Monomial, Polynomial, Unknown, without
from warpsmith.extensions.scaffold.indices.values import VARYING, IndexValues
from warpsmith.source.declarations.named_constants import integer_value
from warpsmith.source.tree.syntax_tree import Variable, find, strip

USUAL = {True: ((64,), (16, 16), (16, 4, 4)), False: ((256,), (32, 8), (32, 8))}
"""Usual blocks of one to three axes, in OpenCL and in others."""
_MOST_THREADS = 1024
_SHOWN = tuple(
    re.compile(rf"(?:(?:img|image|n|num)_?)?(?:{p})", re.I)
    for p in (r"w(?:idth)?|col(?:umn)?s|x", r"h(?:eight)?|rows|y", r"depth|slices|z")
)
"""Names that say which axis they belong to."""
_ROLES = (
    re.compile(
        r"(?:img|image|n|num|size)?_?(?:w(?:idth)?|col(?:umn)?s?|n?x(?:size|dim)?|n|len(?:gth)?|size|count|num\w*)",
        re.I,
    ),
    re.compile(r"(?:img|image|n|num|size)?_?(?:h(?:eight)?|rows?|n?y(?:size|dim)?|m)", re.I),
    re.compile(r"(?:img|image|n|num|size)?_?(?:d(?:epth)?|slices?|n?z(?:size|dim)?)", re.I),
)


@dataclass(frozen=True)
class AxisExtent:
    """Threads or blocks of a launch along one axis."""

    size: Polynomial
    in_blocks: bool
    is_sure: bool
    reason: str
    is_invented: bool = False


@dataclass(frozen=True)
class DerivedLaunch:
    """A launch, axis by axis."""

    axes: tuple[AxisExtent, ...]
    block: tuple[int, ...]

    @property
    def is_sure(self) -> bool:
        """True if no extent is a guess."""
        return all(e.is_sure for e in self.axes)


def kinds_of(facts: Facts) -> dict[str, set[str]]:
    """Coordinates that the kernel reads (`gid`, `tid`, `bid`, ...), by axis."""
    found: dict[str, set[str]] = {axis: set() for axis in AXES}
    for function in facts.source.reachable:
        for node in find(function, "field_expression", "call_expression"):
            where = facts.coordinate(node)
            if where:
                found[where[-1]].add(where[:-2])
    return found


def shared_arrays(facts: Facts) -> list[Variable]:
    """Arrays of a fixed size in the kernel's local memory."""
    body = facts.source.body
    inside = (
        v for v in facts.source.variables if body.start_byte <= v.declaration.start_byte < body.end_byte
    )
    return [v for v in inside if v.is_shared and v.is_array and "[]" not in facts.source.of(v.declarator)]


def block_of_places(found: Sequence[BufferUse], kinds: Mapping[str, set[str]], count: int) -> dict[int, int]:
    """Block extents by which the kernel itself multiplies its block's index, by number of the axis."""
    blocks: dict[int, int] = {}
    for n, axis in enumerate(AXES[:count]):
        if kinds[axis] & {"gid", "bdim", "gsize"}:
            continue
        for place in found:
            terms = dict(place.index.terms)
            step = terms.get((f"$bid.{axis}",), 0)
            if terms.get((f"$tid.{axis}",)) == 1 and 1 < step <= _MOST_THREADS:
                blocks[n] = min(blocks.get(n, step), step)
    return blocks if prod(blocks.values()) <= _MOST_THREADS else {}


def block_of_tiles(values: IndexValues, count: int) -> dict[int, int]:
    """Block extents that arrays in local memory and their indices show, by number of the axis."""
    found: dict[int, int] = {}
    for v in shared_arrays(values.facts):
        sizes = _sizes(values, values.facts.source.of(v.declarator))
        for indices in _indices(values, v.name):
            for size, index in zip(sizes, indices, strict=False):
                for axis, extent in _tile(index, size):
                    if axis < count and 1 < extent <= _MOST_THREADS:
                        found[axis] = min(found.get(axis, extent), extent)
    return found if prod(found.values()) <= _MOST_THREADS else {}


def _sizes(values: IndexValues, declarator: str) -> list[int | None]:
    texts = re.findall(r"\[([^\]]*)\]", declarator)
    return [integer_value(re.sub(r"\s+", " ", text.strip()), values.numbers) for text in texts]


def _indices(values: IndexValues, name: str) -> Iterator[list[Polynomial | None]]:
    """Indices of the uses of an array, one for each of its brackets."""
    for node in find(values.facts.source.body, "subscript_expression"):
        parent = node.parent
        if parent is not None and parent.type == "subscript_expression" and parent.child(0) == node:
            continue
        found: list[Polynomial | None] = []
        inner = node
        while (element := element_of(inner)) is not None:
            inner = strip(element[0])
            try:
                found.insert(0, values.of(element[1]))
            except Unknown:
                found.insert(0, None)
        if values.facts.source.of(inner) == name:
            yield found


_THREADS: tuple[Monomial, ...] = tuple((f"$tid.{axis}",) for axis in AXES)


def _tile(index: Polynomial | None, size: int | None) -> Iterator[tuple[int, int]]:
    """Axes, and the extent that an index of an array with this many elements shows."""
    if index is None or size is None:
        return
    terms = dict(index.terms)
    strides = {n: terms[name] for n, name in enumerate(_THREADS) if name in terms}
    if len(strides) == 1 and set(terms) <= {*_THREADS, ()}:
        ((axis, stride),) = strides.items()
        offset = terms.get((), 0)
        if stride == 1 and offset == 0:
            yield axis, size
    ordered = sorted(strides.items(), key=lambda item: item[1])
    for (axis, stride), (_, outer) in pairwise(ordered):
        if stride > 0 and outer % stride == 0:
            yield axis, outer // stride
    if len(ordered) > 1 and ordered[-1][1] > 0 and size % ordered[-1][1] == 0:
        yield ordered[-1][0], size // ordered[-1][1]


def extents(
    values: IndexValues,
    uses: Sequence[tuple[BufferUse, list[Guard]]],
    kinds: Mapping[str, set[str]],
    count: int,
    unused: Sequence[str],
    names: Sequence[str],
) -> tuple[AxisExtent, ...]:
    """Extents of the launch along each of its axes.

    Args:
        unused: whole-number arguments that the body does not name.
        names: all whole-number arguments.
    """
    strides = _strides(uses)
    found: list[AxisExtent | None] = []
    for n in range(count):
        own = _bounded(values, uses, n)
        if own is None and n in strides:
            words = f"{strides[n].text()} is the stride of the next axis"
            own = AxisExtent(strides[n], not _in_threads(values, uses, n, kinds), True, words)
        found.append(own)
    taken = {name for e in found if e for name in e.size.names}
    for place, guards in uses:
        taken |= place.index.names.union(*(g.large.names for g in guards))
    for n in range(count):
        if found[n] is None:
            blocks = not _in_threads(values, uses, n, kinds)
            name, invented = _named(n, count, unused, names, taken, blocks)
            taken.add(name)
            unused = [s for s in unused if s != name]
            words = f"the kernel has no bound on {AXES[n]}; buffer sizes were chosen to fit the grid"
            found[n] = AxisExtent(Polynomial.name(name), blocks, True, words, invented)
    return tuple(e for e in found if e is not None)


def _named(
    n: int, count: int, unused: Sequence[str], names: Sequence[str], taken: set[str], blocks: bool
) -> tuple[str, bool]:
    """A name for the extent of an axis that nothing bounds, and whether it is invented."""
    shown = (s for s in names if s not in taken and _SHOWN[n].fullmatch(s))
    own = next(shown, "") or next((s for s in unused if _ROLES[n].fullmatch(s)), "")
    if own:
        return own, False
    plain = ("groups" if blocks else "n") if count == 1 else ("width", "height", "depth")[n]
    while plain in taken or plain in names or plain in unused:
        plain = f"{plain}_{AXES[n]}" if len(plain) < 20 else f"{plain}0"
    return plain, True


def _in_threads(
    values: IndexValues, uses: Sequence[tuple[BufferUse, list[Guard]]], n: int, kinds: Mapping[str, set[str]]
) -> bool:
    """True if an index along an axis is that of a thread, and not only of its block."""
    axis = AXES[n]
    if "gid" in kinds[axis] or "bid" not in kinds[axis]:
        return True
    return any(_is_thread(place.index, axis, values.block[n]) for place, _ in uses) or (
        {"tid", "bdim"} <= kinds[axis] and "gdim" not in kinds[axis] and not _only_groups(uses, axis)
    )


def _only_groups(uses: Sequence[tuple[BufferUse, list[Guard]]], axis: str) -> bool:
    return any(f"$bid.{axis}" in place.index.names for place, _ in uses)


def _is_thread(p: Polynomial, axis: str, threads: int) -> bool:
    """True if a value depends on the thread's index over the whole grid."""
    terms = dict(p.terms)
    for m, c in p.terms:
        rest = without(m, (f"$bid.{axis}",))
        if rest is None:
            continue
        own: Monomial = tuple(sorted((*rest, f"$tid.{axis}")))
        if own in terms and c == threads * terms[own]:
            return True
    return False


def _bounded(values: IndexValues, uses: Sequence[tuple[BufferUse, list[Guard]]], n: int) -> AxisExtent | None:
    """The extent that conditions on the index along an axis give; the loosest that each use has."""
    largest = Largest(values)
    bounds: list[tuple[Polynomial, bool, str]] = []
    for _, guards in uses:
        for guard in reversed(guards):
            found = _bound(values, guard, n)
            # One thread alone says nothing of how many there are.
            if found is not None and found[0].constant != 1:
                bounds.append((found[0], found[1], guard.words))
                break
    if not bounds:
        return None
    different = list(dict.fromkeys((b, blocks) for b, blocks, _ in bounds))
    blocks = different[0][1]
    sure = all(b == blocks for _, b in different)
    size = different[0][0]
    if sure:
        try:
            size = largest.larger([b for b, _ in different])
        except Unknown:
            sure = False
    words = next((w for b, _, w in bounds if b == size), bounds[0][2])
    return AxisExtent(size, blocks, sure, f"from `{words}`")


def _parted(values: IndexValues, small: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The varying part of a value, counted from the starts of its variables, and the rest."""
    for name in sorted(small.names):
        if name in values.starts:
            small = small.substituted(name, values.starts[name])
    offset = Polynomial(tuple(t for t in small.terms if not any(x[0] == VARYING for x in t[0])))
    return small - offset, offset


def _bound(values: IndexValues, guard: Guard, n: int) -> tuple[Polynomial, bool] | None:
    """The extent that one condition gives, and whether it counts blocks."""
    if not is_size(guard.large):
        return None
    small, offset = _parted(values, guard.small)
    axis = AXES[n]
    tid, bid = (f"$tid.{axis}",), (f"$bid.{axis}",)
    terms = dict(small.terms)
    size = guard.large - offset + Polynomial.number(1)
    if len(terms) == 1 and terms.get(bid) == 1 and values.block[n] != 1:
        return size, True
    if values.block[n] == 1 and terms.get(bid) == 1 and set(terms) <= {tid, bid}:
        return size, False
    step = terms.get(tid, 0)
    if set(terms) != {tid, bid} or step < 1 or terms[bid] != step * values.block[n]:
        return None
    if step == 1:
        return size, False
    return values.rounded(size, step), False


def _steps(index: Polynomial) -> dict[str, Monomial]:
    """Factors of the names that vary alone in a term."""
    steps: dict[str, Monomial] = {}
    for m, _ in index.terms:
        varying = [x for x in m if x[0] == VARYING]
        if len(varying) == 1:
            steps[varying[0]] = tuple(x for x in m if x[0] != VARYING)
    return steps


def _strides(uses: Sequence[tuple[BufferUse, list[Guard]]]) -> dict[int, Polynomial]:
    """Extents of axes that are the factor of the next coarser value of an index, by number of the axis."""
    found: dict[int, Polynomial] = {}
    for place, _ in uses:
        steps = _steps(place.index)
        for n, axis in enumerate(AXES):
            own = steps.get(f"$bid.{axis}")
            if own is None:
                continue
            coarser = [rest for s in steps.values() if (rest := without(s, own))]
            if coarser and all("(" not in x and x[0] != "#" for x in min(coarser, key=len)):
                found.setdefault(n, Polynomial.of({min(coarser, key=len): 1}))
    return found
