"""Sizes of OpenCL's `__local` arguments and of CUDA's dynamic shared memory for other blocks."""

import re
from collections import Counter
from collections.abc import Iterable

from tree_sitter import Node

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint
from warpsmith.extensions.rules.analysis.draft import limit
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.memory.shared_arrays import LARGEST, is_dynamic
from warpsmith.extensions.rules.analysis.operations import operator
from warpsmith.extensions.rules.analysis.threads.block_places import MOST_STEPS
from warpsmith.source.tree.syntax_tree import Variable, strip


def grown(kernel: Kernel, launch: Launch) -> tuple[Argument, ...]:
    """The kernel's arguments with local memory for the blocks of `launch`.

    Each extent of the block that was a number `v` and is now `P` multiplies the elements by
    `max(P, v) / v`. That is enough for whatever needs `a + b * v` elements, and for products of such
    terms of several axes: see `why_not` for what it is not enough for.
    """
    factors = [(new, int(old)) for old, new in _changed(kernel.launch, launch) if old.isdecimal()]
    return tuple(_grown(a, factors) if a.role is Role.LOCAL else a for a in kernel.arguments)


def _changed(old: Launch, new: Launch) -> list[tuple[str, str]]:
    """Extents of the block that differ, before and after."""
    pairs = zip(old.block, new.block, strict=True)
    return [(a.text, b.text) for a, b in pairs if a.text != b.text]


def _grown(argument: Argument, factors: list[tuple[str, int]]) -> Argument:
    first = argument.shape[0].text
    for name, value in factors:
        larger = f"max({name}, {value})"
        exact = first == str(value)
        first = larger if exact else f"ceil_div(({first}) * {larger}, {value})"
    return argument.model_copy(update={"shape": (Expression(first), *argument.shape[1:])})


def with_shared_bytes(kernel: Kernel, launch: Launch) -> Launch:
    """The launch with dynamic shared memory for its blocks, never less than the job gives.

    An extent that the job's size names is replaced there. Else the size grows with the extent, as `grown`
    does it; a number that no block exceeds leaves it as it is.
    """
    size = kernel.launch.shared_bytes.text
    if size == "0":
        return launch
    for old, new in _changed(kernel.launch, launch):
        if _names(size, old):
            size = f"max({size}, {_replaced(size, old, new)})"
        elif not (old.isdecimal() and int(old) >= LARGEST):
            size = f"ceil_div(({size}) * max({new}, {old}), {old})"
    return launch.model_copy(update={"shared_bytes": Expression(size)})


def _names(size: str, extent: str) -> bool:
    """True if a size holds an extent that is no plain number."""
    return not extent.isdecimal() and re.search(_whole(extent), size) is not None


def _whole(extent: str) -> str:
    return rf"(?<![\w.]){re.escape(extent)}(?![\w.(])"


def _replaced(size: str, old: str, new: str) -> str:
    return re.sub(_whole(old), lambda _: f"({new})", size)


def why_not(facts: Facts, constant: str = "", axes: int = 0, *, dynamic: bool = False) -> str | None:
    """The reason why a local argument may need more memory than `grown` provides; None if it does not.

    Args:
        constant: a name that is lifted together with extents of the block.
        axes: number of extents that follow that name.
        dynamic: whether CUDA's dynamic shared memory is meant instead.
    """
    for a in facts.accesses(facts.source.body):
        if a.root is None or not (is_dynamic(facts, a.root) if dynamic else _is_local(a.root)):
            continue
        if a.index is None:
            return f"where `{facts.source.of(a.node)[:60]}` reaches in local memory is not clear"
        powers = _powers(facts, a.index, constant)
        steep = sum(powers.values()) > axes if constant else any(n > 1 for n in powers.values())
        if steep:
            return f"local memory is indexed by `{facts.source.of(a.index)[:60]}`, which outgrows the block"
    return None


def why_not_shared(facts: Facts, launch: Launch, axes: Iterable[int]) -> str | None:
    """The reason why dynamic shared memory may need more than `with_shared_bytes` provides, if extents along
    `axes` change; None if it does not."""
    size = launch.shared_bytes.text
    extents = [launch.block[n].text for n in axes]
    if size == "0" or all(_names(size, e) or (e.isdecimal() and int(e) >= LARGEST) for e in extents):
        return None
    return why_not(facts, dynamic=True)


def _is_local(v: Variable) -> bool:
    """True for OpenCL's `__local` arguments."""
    return v.is_shared and v.is_parameter


def _powers(facts: Facts, node: Node, constant: str, depth: int = 0) -> Counter[str]:
    """Powers of a thread's index or of the block's extent in a product, by axis."""
    node = strip(node)
    coordinate = facts.coordinate(node)
    if coordinate is not None:
        return Counter({coordinate[-1]: 1})
    if constant and node.type == "identifier" and facts.source.of(node) == constant:
        return Counter({constant: 1})
    value = facts.value_of(node) if node.type == "identifier" and depth < MOST_STEPS else None
    if value is not None:
        return _powers(facts, value, constant, depth + 1)
    called = node.type == "call_expression"
    product = called and facts.source.callee(node) in ("mul24", "mad24", "mad", "fma")
    product |= node.type == "binary_expression" and operator(node) in ("*", "<<")
    found: Counter[str] = Counter()
    for child in facts.source.arguments(node) if called else node.named_children:
        inner = _powers(facts, child, constant, depth)
        found = found + inner if product else found | inner
    return found


def fits(arguments: tuple[Argument, ...]) -> tuple[Constraint, ...]:
    """The constraint that the device has the local memory for these arguments; empty if they need none."""
    return _fits([a.bytes_expression.text for a in arguments if a.role is Role.LOCAL])


def shared_fits(before: Launch, after: Launch) -> tuple[Constraint, ...]:
    """The constraint of `fits` for dynamic shared memory, if its size is another one than before."""
    changed = before.shared_bytes.text != after.shared_bytes.text
    return _fits([after.shared_bytes.text] if changed else [])


def _fits(listed: list[str]) -> tuple[Constraint, ...]:
    if not listed:
        return ()
    fit = f"{' + '.join(listed)} <= device.max_shared_per_block"
    return (limit(fit, "the device has no more local memory for a block"),)
