"""Limits in a kernel's text on the numbers of threads that its block may have."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.operations import both_ways, operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import mentions
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP, is_warp_width, widest_warp
from warpsmith.extensions.rules.analysis.values.constant_values import constant_value
from warpsmith.source.tree.syntax_tree import LOOPS, Source, Variable, ancestors, contains, find, strip

_EXCHANGES = re.compile(
    r"__shfl|^__reduce_\w+_sync$|^warp_?reduce|^sub_group_(?:reduce|shuffle|broadcast|scan)"
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(((?:[^()]|\([^()]*\))*)\)")


def head_of(source: Source) -> str:
    """Text of the kernel's definition before its name, with what stands before its type."""
    declarator = source.kernel.child_by_field_name("declarator")
    end = source.kernel.end_byte if declarator is None else declarator.end_byte
    start = max(0, source.kernel.start_byte - 300)
    head = source.between(start, end)
    return head[max(head.rfind(c, 0, source.kernel.start_byte - start) for c in ";}") + 1 :]


def own_limit(facts: Facts, parameters: frozenset[str]) -> str | None:
    """The most threads that the kernel declares for its block: a number or a parameter; None: nothing.

    Raises:
        LookupError: what it declares is not known, or is the one block that it takes.
    """
    head = head_of(facts.source)
    if "reqd_work_group_size" in head:
        raise LookupError("the kernel declares the block that it takes")
    for name, body in re.findall(
        r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)(.*__launch_bounds__.*)$", facts.source.text
    ):
        if re.search(rf"\b{name}\b", head):
            head += body
    found = _BOUNDS.search(head)
    if found is None:
        if "__launch_bounds__" in head:
            raise LookupError("how many threads the kernel's launch bounds allow is not clear")
        return None
    text = re.split(r",(?![^()]*\))", found.group(1))[0].strip()
    if text in parameters:
        return text
    value = constant_value(facts, text)
    if value is None:
        raise LookupError(f"how many threads `__launch_bounds__({text})` allows is not clear")
    return str(value)


def divisors(facts: Facts, axis: str) -> Iterator[int | str]:
    """Divisors of the block's extent along an axis: constants, or the width of a warp."""
    for n in _expressions(facts):
        left, right = operands(n)
        if operator(n) in ("/", "%", ">>") and facts.coordinate(left) == f"bdim.{axis}":
            text = facts.source.of(right)
            if text == "warpSize" and operator(n) != ">>":
                yield WARP if is_warp_width(text, facts.source.backend) else "device.warp_size"
                continue
            value = constant_value(facts, text)
            if value is not None and 0 < value <= 1024:
                yield 1 << value if operator(n) == ">>" and value < 11 else value


def why_fixed(facts: Facts, axis: str) -> str:
    """The reason why the kernel needs the job's extent along an axis; empty if nothing shows it."""
    for n in _expressions(facts):
        if operator(n) not in ("==", "!="):
            continue
        for a, b in both_ways(n):
            fixed = constant_value(facts, facts.source.of(b)) or facts.source.of(b) == "warpSize"
            if facts.coordinate(a) == f"bdim.{axis}" and fixed:
                return f"`{facts.source.of(n)}` asks for a fixed number of threads"
    return _why_one_warp(facts, axis) or _why_own_array(facts)


def _expressions(facts: Facts) -> Iterator[Node]:
    return (n for f in facts.source.reachable for n in find(f, "binary_expression"))


def _why_one_warp(facts: Facts, axis: str) -> str:
    """The reason why lanes exchange values of the whole block as it is; empty if nothing shows it."""
    calls = [
        c
        for f in facts.source.reachable
        for c in find(f, "call_expression")
        if _EXCHANGES.search(facts.source.callee(c))
    ]
    if not calls:
        return ""
    extent = facts.block[AXES.index(axis)]
    if axis == "x" and extent.isdecimal() and int(extent) <= widest_warp(facts.source.backend):
        return f"`{facts.source.callee(calls[0])}` exchanges values of a warp, and the block is one"
    combined = any(v.is_shared and v.is_array for v in facts.source.variables)
    for call in calls if combined else ():
        distance = _distance(facts, call)
        if distance is not None and 2 * distance < widest_warp(facts.source.backend):
            return f"`{facts.source.of(call)[:60]}` sums over a fixed number of lanes"
    return ""


def _distance(facts: Facts, call: Node) -> int | None:
    """The largest distance over which a call and its like exchange values; None if it is not known."""
    name, arguments = facts.source.callee(call), facts.source.arguments(call)
    place = 2 if name.endswith("_sync") else 1
    if "shfl" not in name or name.endswith("shfl_sync") or len(arguments) <= place:
        return None
    offset, *widths = arguments[place : place + 2]
    width = constant_value(facts, facts.source.of(widths[0])) if widths else None
    if width is not None and width < widest_warp(facts.source.backend):
        return width // 2
    if constant_value(facts, facts.source.of(strip(offset))) is None:
        return _first_distance(facts, strip(offset))
    function = next((a for a in ancestors(call) if a.type == "function_definition"), call)
    return max(_offsets(facts, function, name, place), default=None)


def _offsets(facts: Facts, function: Node, name: str, place: int) -> Iterator[int]:
    """Numbers that the calls of a function have as an argument."""
    for call in find(function, "call_expression"):
        if facts.source.callee(call) == name:
            for argument in facts.source.arguments(call)[place : place + 1]:
                value = constant_value(facts, facts.source.of(argument))
                yield from () if value is None else (value,)


def _first_distance(facts: Facts, offset: Node) -> int | None:
    """The number from which the counter of a loop falls; None for what is no such counter."""
    v = facts.variable(offset)
    if v is None or v.init is None or v.scope is None or v.scope.type != "for_statement":
        return None
    update = v.scope.child_by_field_name("update")
    falls = update is not None and re.search(r">>=|/=", facts.source.of(update))
    return constant_value(facts, facts.source.of(v.init)) if falls else None


def _why_own_array(facts: Facts) -> str:
    """The reason why the elements that a thread keeps depend on the block; empty if they do not."""
    for function in facts.source.reachable:
        for a in facts.accesses(function):
            if a.root is None or a.index is None or not _is_private(a.root):
                continue
            if mentions(facts, a.index, "bdim"):
                return f"which elements of {a.root.name} a thread uses depends on the number of threads"
            for v in facts.variables_in(a.index):
                loop = _loop_of(facts, v, a.node)
                if loop is not None and _follows_block(facts, loop, v):
                    words = "a thread fills depends on the number of threads"
                    return f"how many elements of {a.root.name} {words}"
    return ""


def _is_private(v: Variable) -> bool:
    return v.is_array and v.scope is not None and not (v.is_shared or v.is_parameter or v.is_pointer)


def _loop_of(facts: Facts, v: Variable, at: Node) -> Node | None:
    """The innermost loop around a place that changes a variable."""
    return next((a for a in ancestors(at) if a.type in LOOPS and facts.changes_in(v, a)), None)


def _follows_block(facts: Facts, loop: Node, counter: Variable) -> bool:
    """True if the number of a loop's iterations depends on the block's extent, or each iteration takes the
    elements of a whole block and there is a fixed number of them."""
    condition = loop.child_by_field_name("condition")
    if condition is None or mentions(facts, condition, "bdim"):
        return True
    body = loop.child_by_field_name("body") or loop
    places = (place for v in facts.variables_in(condition) for place in facts.assigned(v))
    if any(p.parent is not None and mentions(facts, p.parent, "bdim") for p in places if contains(loop, p)):
        return True
    return _covers_a_row(facts, body, counter)


def _covers_a_row(facts: Facts, body: Node, counter: Variable) -> bool:
    """True if the counter times the block's extent says which elements an iteration takes, and the grid's
    blocks do not share the elements."""
    for n in find(body, "binary_expression"):
        if operator(n) != "*":
            continue
        for a, b in both_ways(n):
            if facts.variable(strip(a)) == counter and (facts.coordinate(b) or "").startswith("bdim."):
                axis = (facts.coordinate(b) or "")[-1]
                return not any(
                    operator(m) == "*"
                    and {f"bid.{axis}", f"bdim.{axis}"} <= {facts.coordinate(o) for o in _factors(m)}
                    for m in _expressions(facts)
                )
    return False


def _factors(node: Node) -> list[Node]:
    node = strip(node)
    if node.type != "binary_expression" or operator(node) != "*":
        return [node]
    return [f for o in operands(node) for f in _factors(o)]
