"""Body of a kernel whose threads have packs of neighbouring elements."""

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.memory.index_packs import IndexPack
from warpsmith.extensions.rules.analysis.memory.vector_access import AccessGroup
from warpsmith.extensions.rules.bodies.wide_access import wide_access
from warpsmith.source.tree.syntax_tree import Edit, apply_edits, find

PACK = "WS_PACK"
LANE = "ws_lane"
CUDA = f"#if {PACK} > 1\n{wide_access(PACK, 'ws_pack', 'WsElements')}#endif\n"


class IndexPackText:
    """Writes the body: a pack that lies inside the guards is loaded and stored as a whole.

    Any other pack goes through the body as it is, element by element, so every number of elements is right.
    """

    def __init__(self, facts: Facts, plan: IndexPack) -> None:
        self._source = facts.source
        self._plan = plan

    def body(self) -> str:
        """The text between the braces of the kernel."""
        plan = self._plan
        lanes = f"for (int {LANE} = 0; {LANE} < {PACK}; ++{LANE})"
        lines = [
            "",
            "bool ws_whole = true;",
            "#pragma unroll",
            f"{lanes} {{",
            *(self._text(s) for s in plan.prefix if s not in plan.once),
            *(f"ws_whole = ws_whole && {'' if h else '!'}({self._source.of(c)});" for c, h in plan.guards),
            *(f"ws_whole = ws_whole && (unsigned long long)({t}) < 0x80000000ull;" for t in plan.small),
            "}",
            "if (ws_whole) {",
            f"const int {LANE} = 0;",
            *(self._text(s, narrow=True) for s in (*plan.prefix, *plan.statements) if self._is_first(s)),
            f"if ({' && '.join(f'({d}) % {PACK} == 0' for d in plan.divisors) or 'true'}) {{",
            *self._loads(),
            "#pragma unroll",
            f"{lanes} {{",
            *(self._text(s, inside=True) for s in (*plan.prefix, *plan.statements) if s not in plan.once),
            "}",
            *(f"ws_pack_store(ws_to_{n}, ws_pack_{n});" for n, g in enumerate(plan.groups) if g.stores),
            "return;",
            "}",
            "}",
            f"{lanes} {{",
            self._single(),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _is_first(self, statement: Node) -> bool:
        return statement in self._plan.setup or statement in self._plan.once

    def _loads(self) -> list[str]:
        lines = []
        for n, g in enumerate(self._plan.groups):
            lines.append(f"auto* ws_to_{n} = {g.address('')};")
            lines.append(f"WsElements<decltype(ws_pack_element(ws_to_{n}))> ws_pack_{n};")
            if g.loads:
                lines.append(f"ws_pack_load(ws_to_{n}, ws_pack_{n});")
        for n, g in enumerate(self._plan.shared):
            lines.append(f"const auto ws_same_{n} = {self._source.of(g.accesses[0].node)};")
        return lines

    def _text(self, statement: Node, *, inside: bool = False, narrow: bool = False) -> str:
        """A statement for the lane in scope.

        Args:
            inside: whether its accesses are those of the pack.
            narrow: whether it divides in 32 bits.
        """
        start = statement.start_byte
        edits = list(self._index_edits(start, statement))
        for n, g in enumerate(self._plan.groups if inside else ()):
            edits += self._lane_edits(g, statement, f"ws_pack_{n}.lane[{LANE}]")
        for n, g in enumerate(self._plan.shared if inside else ()):
            edits += self._lane_edits(g, statement, f"ws_same_{n}")
        for quotient in self._plan.narrow if narrow else ():
            if statement.start_byte <= quotient.start_byte < statement.end_byte:
                edits += _narrowed(quotient, start)
        return apply_edits(self._source.of(statement), edits)

    def _lane_edits(self, group: AccessGroup, statement: Node, lane: str) -> list[Edit]:
        start, end = statement.start_byte, statement.end_byte
        size = end - start
        return [e for e in group.lane_edits(self._source, start, lane) if e.start >= 0 and e.end <= size]

    def _index_edits(self, base: int, around: Node) -> list[Edit]:
        init = self._plan.index.init
        assert init is not None
        if not around.start_byte <= init.start_byte < around.end_byte:
            return []
        text = f"(({self._source.of(init)}) * {PACK} + {LANE})"
        return [Edit(init.start_byte - base, init.end_byte - base, text)]

    def _single(self) -> str:
        """The kernel's own statements for one element."""
        body = self._source.body
        start, end = body.start_byte + 1, body.end_byte - 1
        edits = self._index_edits(start, body)
        for n in find(body, "return_statement"):
            edits.append(Edit(n.start_byte - start, n.start_byte + len("return") - start, "continue"))
        return apply_edits(self._source.between(start, end), edits)


def _narrowed(quotient: Node, base: int) -> list[Edit]:
    """`a / b` in 32 bits."""
    left, right = quotient.child_by_field_name("left"), quotient.child_by_field_name("right")
    assert left is not None and right is not None
    return [
        Edit(left.start_byte - base, left.start_byte - base, "(long long)((unsigned)("),
        Edit(left.end_byte - base, left.end_byte - base, ")"),
        Edit(right.start_byte - base, right.start_byte - base, "(unsigned)("),
        Edit(right.end_byte - base, right.end_byte - base, "))"),
    ]
