"""Shared arrays of a fixed size: how many threads a block may have with them."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.operations import both_ways, element_of, operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import is_warp_size, is_warps, resolved
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP
from warpsmith.extensions.rules.analysis.values.constant_values import constant_value
from warpsmith.extensions.rules.preparation.reference_parameters import parameters_of
from warpsmith.source.declarations.named_constants import find_constants, integer_value
from warpsmith.source.tree.syntax_tree import Variable, ancestors, contains, find, strip

LARGEST = 1024
"""Most threads of a block."""
_SINGLE = re.compile(
    r"(?:(?:un)?signed )?(?:char|short|int|long(?: long)?)|bool|size_t|u?int(?:8|16|32|64)_t|unsigned"
    r"|(?:float|double|half|u?(?:int|char|short|long))[1-4]?|__half2?|__nv_bfloat16[2]?"
)
"""Types of one shared value, whose size does not depend on the block."""
_CUB = r"\busing\s+{}\s*=\s*(?:::)?cub::BlockReduce\s*<([^;<>]*)>\s*;"
_CUB_CALLS = {"Reduce": 3, "Sum": 2}
"""Reductions of CUB that take the number of threads last, and how many arguments they have then."""
_COMPARES = ("<", "<=", ">", ">=", "==", "!=")


def room(facts: Facts) -> int | str:
    """The most threads of a block for which every shared array is large enough.

    An array may have an element for each warp, but not one for each thread. The reason if how an array is
    indexed does not show it. Arrays whose size the launch gives are left out.
    """
    found = LARGEST
    for function in facts.source.reachable:
        for v in facts.source.variables:
            inside = function.start_byte <= v.declaration.start_byte < function.end_byte
            if not (v.is_shared and inside) or v.is_parameter:
                continue
            each = (_fixed_warp(facts) or LARGEST) if is_dynamic(facts, v) else _room_of(facts, v)
            if isinstance(each, str):
                return each
            found = min(found, each)
    return found


def is_dynamic(facts: Facts, v: Variable) -> bool:
    """True for CUDA's `extern __shared__ T a[]`, whose size the launch gives."""
    return v.is_shared and "extern" in facts.source.of(v.declaration).split()


def _room_of(facts: Facts, v: Variable) -> int | str:
    if not v.is_array:
        return LARGEST if _SINGLE.fullmatch(v.kind) else _room_of_object(facts, v)
    uses = list(_uses(facts, v))
    unclear = next((a for a in uses if a.index is None or not _counts_from_first(facts, a)), None)
    if unclear is not None:
        return f"where `{facts.source.of(unclear.node)[:60]}` reaches in shared array {v.name} is not clear"
    return _room_by_indices(facts, v, uses)


def _room_by_indices(facts: Facts, v: Variable, uses: list[Access]) -> int | str:
    """Room of an array by the kinds of all indices of its accesses."""
    sizes, warps = _sizes(facts, v), []
    kinds = [(n, _kind(facts, i)) for a in uses for n, i in zip(sizes, _subscripts(a), strict=False)]
    for size, kind in kinds:
        if kind == "":
            return f"shared array {v.name} is not indexed by warp, so its size may depend on the block"
        if kind == "warp":
            if size is None:
                return f"how many elements shared array {v.name} has is not clear"
            warps.append(WARP * size)
    if warps and "fixed counter" in (kind for _, kind in kinds):
        return f"a loop with a fixed number of iterations reads shared array {v.name}, which warps write"
    return (_fixed_warp(facts) or min(LARGEST, *warps)) if warps else LARGEST


def _sizes(facts: Facts, v: Variable) -> list[int | None]:
    """Extents of an array; None where one is no number."""
    known = {c.name: c.value for c in find_constants(facts.source.text)}
    found: list[int | None] = []
    for declarator in find(v.declarator, "array_declarator"):
        size = declarator.child_by_field_name("size")
        text = "" if size is None else facts.source.of(size)
        given = facts.source.template_argument(text)
        found.insert(0, integer_value(given or text, known))
    return found


def _uses(facts: Facts, v: Variable, depth: int = 0) -> Iterator[Access]:
    """Accesses of an array, also by the functions that get it as an argument."""
    for function in facts.source.reachable:
        for a in facts.accesses(function):
            if a.root != v:
                continue
            handed = list(_handed(facts, a)) if a.index is None else []
            if depth > 2 or not handed:
                yield a
            for parameter in handed if depth <= 2 else ():
                yield from _uses(facts, parameter, depth + 1)


def _handed(facts: Facts, a: Access) -> Iterator[Variable]:
    """Parameters of this source's functions by which a call hands on a whole array."""
    if a.node.type != "call_expression":
        return
    given = facts.source.arguments(a.node)
    position = next((n for n, g in enumerate(given) if g == a.pointer), None)
    if position is None or strip(a.pointer).type != "identifier":
        return
    for function in facts.source.definitions(facts.source.callee(a.node)):
        for declared in parameters_of(function)[position : position + 1]:
            yield from facts.declared_by(declared)


def _counts_from_first(facts: Facts, a: Access) -> bool:
    """True if the indices of an access count from the first element: `(a + lane)[i]` reaches further."""
    base = strip(a.pointer)
    while base.type == "subscript_expression":
        base = strip(base.child_by_field_name("argument") or base.children[0])
    return facts.variable(resolved(facts, base)) == a.root


def _subscripts(a: Access) -> list[Node]:
    """The indices of `a[i][j]`, first one first."""
    found: list[Node] = []
    node = a.node
    while (element := element_of(node)) is not None:
        node, index = element
        found.insert(0, index)
    return found or ([] if a.index is None else [a.index])


def _kind(facts: Facts, index: Node) -> str:
    """`fixed`, `warp`, `lane`, `counter` or `fixed counter`; empty if it is none of these."""
    index = resolved(facts, index)
    if index.type == "number_literal":
        return "fixed"
    if is_warps(facts, index, "tid") or (facts.coordinate(index) == "tid.y" and facts.block[0] == str(WARP)):
        return "warp"
    if _is_lane(facts, index):
        return "lane"
    v = facts.variable(index)
    if v is None or v.scope is None or v.scope.type != "for_statement":
        return ""
    return "fixed counter" if _is_fixed(facts, v.scope.child_by_field_name("condition")) else "counter"


def _is_fixed(facts: Facts, condition: Node | None) -> bool:
    """True if a loop goes on up to a number."""
    compared = None if condition is None else strip(condition)
    if compared is None or compared.type != "binary_expression":
        return False
    falls = facts.source.of(operands(compared)[1]) in ("0", "0u")
    return not falls and any(_constant(facts, n) is not None for n in operands(compared))


def _is_lane(facts: Facts, index: Node) -> bool:
    """True for `tid % 32`, or `tid.x` of a block that is 32 threads wide."""
    index = resolved(facts, index)
    if facts.coordinate(index) == "tid.x":
        return facts.block[0] == str(WARP) or _first_warp(facts, index)
    if index.type != "binary_expression" or operator(index) not in ("%", "&"):
        return False
    left, right = operands(index)
    return facts.coordinate(left) == "tid.x" and is_warp_size(facts, operator(index), right)


def _first_warp(facts: Facts, index: Node) -> bool:
    """True where `tid.x` is known to be below the number of warps, or to be 0."""
    child = index
    for a in ancestors(index):
        condition = a.child_by_field_name("condition")
        unconditional = condition is None or contains(condition, child)
        if condition is not None and not unconditional and child != a.child_by_field_name("alternative"):
            checked = strip(condition)
            if checked.type == "binary_expression" and _is_bound(facts, checked):
                return True
        child = a
    return False


def _is_bound(facts: Facts, checked: Node) -> bool:
    left, right = operands(checked)
    if facts.coordinate(left) != "tid.x":
        return False
    return (operator(checked) == "<" and is_warps(facts, right, "bdim")) or (
        operator(checked) == "==" and facts.source.of(right) == "0"
    )


def _fixed_warp(facts: Facts) -> str:
    """A comparison that is made for a fixed number of warps; empty if there is none."""
    for function in facts.source.reachable:
        for n in find(function, "binary_expression"):
            if operator(n) not in _COMPARES:
                continue
            for a, b in both_ways(n):
                number = _constant(facts, b)
                placed = is_warps(facts, a, "tid") or _is_lane(facts, a)
                if placed and number not in (None, 0, *_last_lanes(facts)):
                    return f"`{facts.source.of(n)}` may stand for a fixed number of warps"
    return ""


def _last_lanes(facts: Facts) -> tuple[int, ...]:
    """The last lane and the width of a warp where all warps have one width: comparisons may name them."""
    language = facts.source.backend.language
    return (WARP - 1, WARP) if language.has_cuda_words and language.widest_warp == WARP else ()


def _constant(facts: Facts, node: Node) -> int | None:
    return constant_value(facts, facts.source.of(resolved(facts, node)))


def _room_of_object(facts: Facts, v: Variable) -> int | str:
    """Room for the storage of a reduction of CUB, if the reduction is told how many threads there are."""
    source = facts.source
    holder = re.fullmatch(r"(?:typename )?(\w+)::TempStorage", v.type_text)
    if holder is None:
        return f"how large shared object {v.name} has to be is not clear"
    made = re.findall(_CUB.format(holder.group(1)), source.text)
    known = {c.name: c.value for c in find_constants(source.text)}
    given = made[0].split(",") if len(made) == 1 else []
    threads = integer_value(given[1], known) if len(given) == 2 else None
    if threads is None:
        return f"for how many threads {holder.group(1)} is made is not clear"
    for n in (n for function in source.reachable for n in facts.names_of(v, function)):
        if not contains(v.declaration, n) and not _counts_threads(facts, n, holder.group(1)):
            return f"{holder.group(1)} is not told how many threads the block has"
    return min(threads, LARGEST)


def _counts_threads(facts: Facts, use: Node, holder: str) -> bool:
    """True for `Holder(storage).Sum(value, threads of the block)` and the like."""
    made = next((a for a in ancestors(use) if a.type == "call_expression"), None)
    call = None if made is None else next((a for a in ancestors(made) if a.type == "call_expression"), None)
    if made is None or call is None or facts.source.callee(made) != holder:
        return False
    given = facts.source.arguments(call)
    count = _CUB_CALLS.get(facts.source.callee(call))
    return len(given) == count and facts.coordinate(given[-1]) == "bdim.x"
