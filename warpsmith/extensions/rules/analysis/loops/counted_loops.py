"""Sequential loops of a thread that count up by one."""

from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.loops.for_loops import ForLoop, header_of
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import LOOPS, Variable, ancestors, find, strip


@dataclass(frozen=True)
class CountedLoop(ForLoop):
    """`for (T k = start; k < bound; ++k) body`; `k` may be declared outside."""

    inclusive: bool
    """True for `k <= bound`."""

    @property
    def sign(self) -> str:
        """Comparison sign of its condition."""
        return "<=" if self.inclusive else "<"


def counted(facts: Facts, node: Node) -> CountedLoop | None:
    """The loop, if it has this form and only its header changes its variable; else None."""
    head = header_of(facts, node)
    if head is None:
        return None
    v, sign = head.variable, operator(head.comparison)
    if v.is_pointer or v.is_array or v.is_parameter or sign not in ("<", "<=", ">", ">="):
        return None
    counter, bound = operands(head.comparison)[:: 1 if sign in ("<", "<=") else -1]
    if facts.variable(strip(counter)) != v or not _counts(facts, head.update, v):
        return None
    if any(facts.changes_in(w, head.body) for w in (v, *facts.variables_in(bound))):
        return None
    return CountedLoop(node, v, head.start, bound, head.body, sign in ("<=", ">="))


def _counts(facts: Facts, update: Node, v: Variable) -> bool:
    text = facts.source.of(update).replace(" ", "")
    return text in (f"{v.name}++", f"++{v.name}", f"{v.name}+=1", f"{v.name}={v.name}+1")


def ends_early(loop: CountedLoop) -> bool:
    """True if an iteration may end the loop, or skip the rest of its body."""
    for n in find(loop.body, "break_statement", "continue_statement", "return_statement", "goto_statement"):
        inner = any(a.type in LOOPS and a != loop.node and loop.contains(a) for a in ancestors(n))
        if not (inner and n.type in ("break_statement", "continue_statement")):
            return True
    return False
