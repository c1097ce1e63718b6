"""Several elements for every thread of a kernel that computes one each."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.space import Parameter
from warpsmith.rewrite.rules.draft import Declined, Draft
from warpsmith.rewrite.rules.facts import AXES, Facts, operands, operator
from warpsmith.rewrite.rules.tree import LOOPS, Edit, ancestors, find, strip

PARAMETER, ITEM = "WS_ITEMS", "ws_item"
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class ElementsPerThread:
    """Repeats the body over neighbouring blocks of elements and shrinks the grid to fit.

    Proven: the thread's place is read in one declaration only, elements outside of the bounds are
    guarded against before any memory is touched, nothing synchronises and nothing is carried from one
    element to the next.
    """

    name = "elements_per_thread"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        place = _place(facts)
        if place is None:
            return Declined("no declaration of a global index at the top of the kernel")
        declaration, index, axis = place
        edit = _item_edit(facts, index, axis)
        if edit is None:
            return Declined(f"`{facts.source.of(index)}` is not written out as a global index")
        reason = _why_not(facts, declaration, index, axis)
        if reason:
            return Declined(reason)
        launch = draft.kernel.launch
        if len(launch.grid) <= AXES.index(axis):
            return Declined(f"the launch has no grid {axis}")
        grid = list(launch.grid)
        grid[AXES.index(axis)] = Expression(f"ceil_div({grid[AXES.index(axis)].text}, {PARAMETER})")
        start, end = declaration.start_byte, facts.source.body.end_byte
        head = f"#pragma unroll\n  for (int {ITEM} = 0; {ITEM} < {PARAMETER}; ++{ITEM}) {{\n  "
        edits = [edit, Edit(start, start, head), Edit(end - 1, end - 1, "}\n")]
        edits += [
            Edit(n.start_byte, n.start_byte + len("return"), "continue") for n in _returns(facts.source.body)
        ]
        return draft.changed(
            self.name,
            f"along {axis}",
            edits=edits,
            launch=launch.model_copy(update={"grid": tuple(grid)}),
            parameters=(
                Parameter(name=PARAMETER, values=(1, 2, 4, 8), meaning=f"elements of a thread along {axis}"),
            ),
        )


def _statements(block: Node) -> list[Node]:
    return [n for n in block.named_children if n.type != "comment"]


def _place(facts: Facts) -> tuple[Node, Node, str] | None:
    """The top-level declaration of a global index, its initialiser and axis; the outermost axis wins."""
    found = []
    for statement in _statements(facts.source.body):
        for declarator in find(statement, "init_declarator") if statement.type == "declaration" else ():
            value = declarator.child_by_field_name("value")
            coordinate = None if value is None else facts.coordinate(value)
            if value is not None and coordinate and coordinate.startswith("gid."):
                found.append((statement, value, coordinate[-1]))
    return max(found, key=lambda f: f[2], default=None)


def _item_edit(facts: Facts, index: Node, axis: str) -> Edit | None:
    """The block's place in the grid becomes that of one of the blocks it stands for."""
    number = AXES.index(axis)
    for node in find(index, "field_expression", "call_expression"):
        where = facts.coordinate(node)
        if where == f"bid.{axis}":
            text = f"({facts.source.of(node)} * {PARAMETER} + {ITEM})"
            return Edit(node.start_byte, node.end_byte, text)
        if where == f"gid.{axis}":
            block = f"(get_group_id({number}) * {PARAMETER} + {ITEM})"
            text = f"({block} * get_local_size({number}) + get_local_id({number}))"
            return Edit(node.start_byte, node.end_byte, text)
    return None


def _returns(body: Node) -> list[Node]:
    return [
        n for n in find(body, "return_statement") if all(a.type != "lambda_expression" for a in ancestors(n))
    ]


def _why_not(facts: Facts, declaration: Node, index: Node, axis: str) -> str | None:
    source, body = facts.source, facts.source.body
    unsafe = facts.unsafe(body)
    if unsafe:
        return f"elements would not be independent: {unsafe}"
    kernel = source.kernel
    if any(
        v.is_shared and kernel.start_byte <= v.declaration.start_byte < body.end_byte
        for v in source.variables
    ):
        return "shared memory ties the threads of a block together"
    if facts.uses("gdim", axis) or facts.uses("gsize", axis):
        return "the kernel reads the size of the grid"
    other = _other_use(facts, index, axis)
    if other is not None:
        return f"`{source.of(other)}` also reads the thread's place along {axis}"
    if find(body, "goto_statement", "labeled_statement"):
        return "it jumps"
    for n in _returns(body):
        if any(a.type in LOOPS for a in ancestors(n)):
            return f"the loop at line {n.start_point[0] + 1} may return"
    for v in source.variables:
        before = v.is_parameter or v.declaration.start_byte < declaration.start_byte
        changed = [n for n in facts.assigned(v) if n.start_byte > declaration.start_byte]
        if before and any(n.end_byte <= body.end_byte and n.start_byte >= body.start_byte for n in changed):
            return f"{v.name} carries a value from one element to the next"
    return _before_reason(facts, declaration) or _guard_reason(facts, declaration, axis)


def _other_use(facts: Facts, index: Node, axis: str) -> Node | None:
    for function in facts.source.reachable:
        for node in find(function, "field_expression", "call_expression"):
            inside = index.start_byte <= node.start_byte and node.end_byte <= index.end_byte
            if not inside and facts.coordinate(node) in (f"tid.{axis}", f"bid.{axis}", f"gid.{axis}"):
                return node
    return None


def _before_reason(facts: Facts, declaration: Node) -> str | None:
    """What stands before the declaration is done once for all elements."""
    written = {a.root.name for a in facts.accesses(facts.source.body) if a.writes and a.root is not None}
    for statement in _statements(facts.source.body):
        if statement.start_byte >= declaration.start_byte:
            return None
        if statement.type != "declaration":
            return f"line {statement.start_point[0] + 1} stands before the index and is no declaration"
        for a in facts.accesses(statement):
            if a.writes or a.root is None or a.root.name in written:
                return f"{a.where(facts.source)} is used before the index is known"
    return None


def _guard_reason(facts: Facts, declaration: Node, axis: str) -> str | None:
    """The bounds check must come before the first access; the last blocks reach further than before."""
    after = [s for s in _statements(facts.source.body) if s.start_byte > declaration.start_byte]
    while after and after[0].type == "declaration" and not list(facts.accesses(after[0])):
        after.pop(0)
    missing = f"no bounds check of the index along {axis} before memory is touched"
    if not after or after[0].type != "if_statement":
        return missing
    condition = after[0].child_by_field_name("condition")
    then = after[0].child_by_field_name("consequence")
    if condition is None or then is None or list(facts.accesses(condition)):
        return missing
    if after[0].child_by_field_name("alternative") is None:
        inner = _statements(then) if then.type == "compound_statement" else [then]
        leaves = [n.type for n in inner] == ["return_statement"]
        if leaves and any(_compares(facts, c, axis, ">=") for c in _terms(condition, "||")):
            return None
        rest = any(list(facts.accesses(s)) for s in after[1:])
        if not rest and any(_compares(facts, c, axis, "<") for c in _terms(condition, "&&")):
            return None
    return missing


def _terms(node: Node, joined_by: str) -> Iterator[Node]:
    node = strip(node)
    if node.type == "binary_expression" and operator(node) == joined_by:
        for side in operands(node):
            yield from _terms(side, joined_by)
    else:
        yield node


def _compares(facts: Facts, node: Node, axis: str, sign: str) -> bool:
    """`index < bound` (or `>=`), either way round, with a bound that is the same for every thread."""
    if node.type != "binary_expression":
        return False
    left, right = operands(node)
    for a, b, found in ((left, right, operator(node)), (right, left, _TURNED.get(operator(node), ""))):
        if found == sign and facts.coordinate(a) == f"gid.{axis}" and facts.coordinate(b) is None:
            names = find(b, "identifier")
            if all(
                (v := facts.variable(n)) is not None and v.is_parameter and not facts.assigned(v)
                for n in names
            ):
                return True
    return False
