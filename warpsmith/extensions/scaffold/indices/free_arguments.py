"""Scalar arguments that decide neither where a kernel goes nor what memory it uses."""

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import operands
from warpsmith.source.tree.syntax_tree import Variable, find

_DECIDING = ("condition", "indices", "initializer", "update")


def free_arguments(facts: Facts) -> frozenset[str]:
    """Names of scalars that reach no condition, no index and no function that the source defines."""
    kernel, body = facts.source.kernel, facts.source.body
    waiting: list[Node] = []
    for node in find(body, *_STATEMENTS):
        waiting += [part for name in _DECIDING if (part := node.child_by_field_name(name)) is not None]
    for call in find(body, "call_expression"):
        name = facts.source.callee(call)
        if facts.source.definitions(name) or name.startswith(
            ("vload", "vstore", "read_image", "write_image")
        ):
            waiting += facts.source.arguments(call)
    pointers = [v for v in facts.source.variables if v.is_pointer and v.init is not None]
    waiting += [v.init for v in pointers if v.init is not None]
    waiting += list(find(body, "pointer_expression"))
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
    own = (v for v in facts.source.variables if v.is_parameter and not (v.is_pointer or v.is_array))
    return (
        frozenset(v.name for v in own if kernel.start_byte <= v.declaration.start_byte < body.start_byte)
        - deciding
    )


_STATEMENTS = (
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "switch_statement",
    "conditional_expression",
    "subscript_expression",
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
