"""The index space of a kernel, as its comparisons and indices name it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.source.syntax_tree import Source, find, strip
from warpsmith.rewrite.source.work_limit import TooMuchWork, limited_work

STEPS = 1_000_000
"""Limit on the work for a guess: about a second."""
_COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class IndexSpace:
    """What a kernel says of its launch and of its buffers' shapes; all of it is a guess."""

    bounds: tuple[str, ...] = ()
    """Arguments that a thread's global index along x, y, z is compared with; up to the first axis without."""
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arguments that are the extents of a buffer, outermost first, by the buffer's name."""


def index_space(text: str, backend: Backend, entry: str) -> IndexSpace:
    """The index space of a kernel; an empty one for a source that says nothing.

    Args:
        entry: the kernel's plain name.
    """
    try:
        with limited_work(STEPS):
            return _found(Facts(Source(text, backend, entry), ("", "", ""), entry))
    except (LookupError, RecursionError, TooMuchWork):
        return IndexSpace()


def _found(facts: Facts) -> IndexSpace:
    found = dict(_compared(facts))
    bounds = []
    for axis in AXES:
        if axis not in found:
            break
        bounds.append(found[axis])
    return IndexSpace(tuple(bounds), dict(_shapes(facts, bounds)))


def _compared(facts: Facts) -> Iterator[tuple[str, str]]:
    """Axes and the argument that the index along each is compared with; the first comparison last."""
    for node in reversed(list(find(facts.source.body, "binary_expression"))):
        if operator(node) not in _COMPARISONS:
            continue
        for index, bound in (operands(node), operands(node)[::-1]):
            axis, name = _axis(facts, index), _argument(facts, bound)
            if axis and name:
                yield axis, name


def _axis(facts: Facts, index: Node) -> str:
    """The axis along which an expression is a thread's global index, at least at first; empty if none."""
    index = strip(index)
    v = facts.variable(index)
    where = facts.coordinate(index if v is None or v.init is None else v.init) or ""
    return where[-1] if where.startswith("gid.") else ""


def _argument(facts: Facts, node: Node) -> str:
    """The scalar argument that an expression is, under casts; empty if it is none."""
    node = strip(node)
    while node.type == "cast_expression" and (inner := node.child_by_field_name("value")) is not None:
        node = strip(inner)
    v = facts.variable(node)
    return v.name if v is not None and v.is_parameter and not v.is_pointer else ""


def _shapes(facts: Facts, bounds: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Buffers whose index multiplies by the extents of inner axes."""
    if len(bounds) < 2:
        return
    for access in facts.accesses(facts.source.body):
        if access.root is None or not access.root.is_parameter or access.index is None:
            continue
        strides = {
            _argument(facts, side) for n in _products(facts, access.index, set()) for side in operands(n)
        }
        for inner in range(len(bounds) - 1, 0, -1):
            if strides.issuperset(bounds[:inner]):
                yield access.root.name, tuple(reversed(bounds[: inner + 1]))
                break


def _products(facts: Facts, index: Node, seen: set[int]) -> Iterator[Node]:
    """Products in an index, and in locals that it names, each looked at once."""
    yield from (n for n in find(index, "binary_expression") if operator(n) == "*")
    for name in (index, *find(index, "identifier")):
        value = facts.value_of(name)
        if value is not None and value.start_byte not in seen:
            seen.add(value.start_byte)
            yield from _products(facts, value, seen)
