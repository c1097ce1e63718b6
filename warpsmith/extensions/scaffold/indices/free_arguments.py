"""Scalar arguments that decide neither where a kernel goes nor what memory it uses."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import operands
from warpsmith.source.tree.syntax_tree import Variable, find

_DECIDING = ("condition", "indices", "initializer", "update")
_WITH_INDICES = ("vload", "vstore", "read_image", "write_image")


def free_arguments(facts: Facts) -> frozenset[str]:
    """Names of scalars that reach no condition, no index and no function that the source defines."""
    kernel, body = facts.source.kernel, facts.source.body
    deciding = _reached(facts, [*_decisions(facts), *_addresses(facts)])
    own = (v for v in facts.source.variables if v.is_parameter and not (v.is_pointer or v.is_array))
    listed = (v.name for v in own if kernel.start_byte <= v.declaration.start_byte < body.start_byte)
    return frozenset(listed) - deciding


def _decisions(facts: Facts) -> Iterator[Node]:
    """Conditions, indices, and arguments of functions that may have either."""
    for node in find(facts.source.body, *_STATEMENTS):
        yield from (part for name in _DECIDING if (part := node.child_by_field_name(name)) is not None)
    for call in find(facts.source.body, "call_expression"):
        name = facts.source.callee(call)
        if facts.source.definitions(name) or name.startswith(_WITH_INDICES):
            yield from facts.source.arguments(call)


def _addresses(facts: Facts) -> Iterator[Node]:
    """Values of pointers, and what is dereferenced."""
    yield from (v.init for v in facts.source.variables if v.is_pointer and v.init is not None)
    yield from find(facts.source.body, "pointer_expression")


def _reached(facts: Facts, waiting: list[Node]) -> set[str]:
    """Parameters that expressions depend on, through variables."""
    seen: set[tuple[str, int]] = set()
    deciding: set[str] = set()
    while waiting:
        for identifier in find(waiting.pop(), "identifier"):
            v = facts.variable(identifier)
            if v is None or (v.name, v.declaration.start_byte) in seen:
                continue
            seen.add((v.name, v.declaration.start_byte))
            if v.is_parameter:
                deciding.add(v.name)
            waiting += _sources(facts, v)
    return deciding


_STATEMENTS = (
    *(f"{word}_statement" for word in ("if", "for", "while", "do", "switch")),
    *("conditional_expression", "subscript_expression"),
)


def _sources(facts: Facts, v: Variable) -> list[Node]:
    """Expressions that a variable's value comes from."""
    found = [] if v.init is None else [v.init]
    for place in facts.assigned(v):
        statement = place.parent
        while statement is not None and statement.type in ("field_expression", "subscript_expression"):
            statement = statement.parent
        if statement is not None and statement.type == "assignment_expression":
            found.append(operands(statement)[1])
        elif statement is not None:
            found.append(statement)
    return found
