"""Values shared by all elements of a thread, and values of single elements."""

from functools import cached_property

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.indices.index_bounds import touches
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.threads.thread_indices import ThreadAxis
from warpsmith.source.tree.syntax_tree import Variable, contains, find


def header(loop: Node) -> list[Node]:
    """Initialiser, condition and update of a loop, those that it has."""
    parts = [loop.child_by_field_name(f) for f in ("initializer", "condition", "update")]
    return [p for p in parts if p is not None]


class Sharing:
    """Answers about the variables and loops of a kernel whose threads have elements along `axes`."""

    def __init__(self, facts: Facts, axes: list[ThreadAxis]) -> None:
        self.facts, self.axes, self.source = facts, axes, facts.source
        self.loops: list[Node] = []
        """Loops proven to be the same for all elements, outermost first."""

    def is_uniform(self, loop: Node) -> bool:
        """True if every element runs the loop equally often."""
        body = loop.child_by_field_name("body")
        condition, update = (loop.child_by_field_name(f) for f in ("condition", "update"))
        if body is None or condition is None or update is None:
            return False
        if _leaves(loop) or not touches(self.facts, body):
            return False
        counters = self._counters(loop.child_by_field_name("initializer"), update)
        if any(self.facts.changes_in(v, body) for v in counters):
            return False
        if any(v.is_pointer or v.is_array or v.is_parameter for v in counters):
            return False
        return all(self.same(p, counters) for p in header(loop))

    def _counters(self, initializer: Node | None, update: Node) -> set[Variable]:
        """Variables that a loop's header declares or changes."""
        counters = set(self.assigned_in(update))
        if initializer is not None:
            counters.update(self.assigned_in(initializer), self.facts.declared_by(initializer))
        return counters

    def same(self, node: Node, counters: set[Variable], depth: int = 0) -> bool:
        """True if a value is the same for all elements of a thread."""
        if touches(self.facts, node):
            return False
        moving = {("bid", a.name) for a in self.axes} | {("gid", a.name) for a in self.axes}
        for n in find(node, "call_expression", "field_expression"):
            where = self.facts.coordinate(n)
            if where is not None and tuple(where.split(".")) in moving:
                return False
            if n.type == "field_expression" and where is None:
                return False
        named = self.facts.variables_in(node)
        return all(v in counters or self._same_variable(v, depth) for v in named)

    def _same_variable(self, v: Variable, depth: int) -> bool:
        if v.is_parameter:
            return not self.facts.assigned(v)
        if v.scope is None:
            return v.is_const
        if self.counts(v):
            return True
        steady = v.init is not None and v in self.pure and not self.enclosing(v)
        return steady and depth < 8 and v.init is not None and self.same(v.init, set(), depth + 1)

    def assigned_in(self, node: Node) -> list[Variable]:
        """Variables that code under `node` may change."""
        return [v for v in self.source.variables if self.facts.changes_in(v, node)]

    def counts(self, v: Variable) -> bool:
        """True if only headers of loops shared by all elements change a variable."""
        if v.is_array or v.is_pointer or v.is_parameter:
            return False
        places = self.facts.assigned(v)
        declared = any(v.declaration == n.child_by_field_name("initializer") for n in self.loops)
        if not places and not declared:
            return False
        if v.init is not None and not declared and not self.same(v.init, set()):
            return False
        return all(any(self._in_header(n, loop) for loop in self.loops) for n in places)

    def _in_header(self, node: Node, loop: Node) -> bool:
        body = loop.child_by_field_name("body")
        return contains(loop, node) and body is not None and not contains(body, node)

    def enclosing(self, v: Variable) -> list[Node]:
        """The shared loops in which a variable is declared."""
        return [n for n in self.loops if contains(n, v.declaration)]

    @cached_property
    def pure(self) -> set[Variable]:
        """Locals that are computed from the indices and the arguments alone."""
        kept: set[Variable] = set()
        for v in self.source.variables:
            if v.is_parameter or v.scope is None or v.init is None or v.is_array:
                continue
            if not contains(self.source.body, v.declaration) or v.is_reference:
                continue
            if not self.facts.assigned(v) and not touches(self.facts, v.init):
                kept.add(v)
        changed = True
        while changed:
            changed = False
            for v in list(kept):
                assert v.init is not None
                if not all(self._steady(n, v, kept) for n in find(v.init, "identifier")):
                    kept.discard(v)
                    changed = True
        return kept

    def _steady(self, node: Node, of: Variable, kept: set[Variable]) -> bool:
        v = self.facts.variable(node)
        if v is None or v.scope is None:
            return v is None or v.is_const
        if v.is_parameter:
            return not self.facts.assigned(v)
        if v in kept:
            return True
        # A counter keeps its value in the body of its loop, so declarations there may use it.
        loops = [n for n in find(self.source.body, "for_statement") if contains(n, of.declaration)]
        return any(
            self._keeps_counter(n, v) and all(contains(n, use) for use in self.uses(of)) for n in loops
        )

    def _keeps_counter(self, loop: Node, v: Variable) -> bool:
        """True if the header of a loop sets a variable and its body does not."""
        init, body = loop.child_by_field_name("initializer"), loop.child_by_field_name("body")
        if body is None or self.facts.changes_in(v, body):
            return False
        return v.declaration == init or any(self._in_header(n, loop) for n in self.facts.assigned(v))

    def uses(self, v: Variable) -> list[Node]:
        """Every identifier of the kernel that refers to a variable."""
        named = self._identifiers.get(v.name, [])
        return [n for n in named if self.facts.variable(n) == v]

    @cached_property
    def _identifiers(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for n in find(self.source.body, "identifier"):
            found.setdefault(self.source.of(n), []).append(n)
        return found


def _leaves(loop: Node) -> bool:
    """True if an iteration may end early for a single element."""
    return bool(find(loop, "break_statement", "continue_statement", "return_statement", "goto_statement"))
