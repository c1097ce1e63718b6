"""The elements of a thread in lockstep: one pass over the kernel's loops, each statement for all elements."""

import re
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.indices.common_to_elements import Sharing, header
from warpsmith.extensions.rules.analysis.indices.index_bounds import GuardedBody, guarded, statements, touches
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.threads.thread_indices import ThreadAxis
from warpsmith.source.tree.syntax_tree import (
    LOOPS,
    Edit,
    Variable,
    ancestors,
    apply_edits,
    contains,
    find,
    walk,
)

FULL = "ws_full"
_SPACE = re.compile(rb"(?:\b(?:__)?(?:global|constant|private)\s+)+$")


@dataclass(frozen=True)
class _Straight:
    """Statements that every element executes on its own."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class _Loop:
    """A loop that is the same for all elements, so that its header runs once."""

    node: Node
    body: tuple["_Straight | _Loop", ...]


_Piece = _Straight | _Loop


class _CannotError(Exception):
    """The kernel has a construct that cannot be separated by element."""


def in_lockstep(facts: Facts, axes: list[ThreadAxis], places: list[Edit]) -> str:
    """Code for threads all of whose elements pass the kernel's checks; empty if there is none.

    Work-items that do not synchronise may run in any order, statement by statement. So a loop whose header is
    the same for all elements runs once, and its body runs for one element after the other: shared values are
    loaded once, and neighbours become vectors.
    """
    found = guarded(facts)
    try:
        return _Lockstep(facts, axes, places, found).text()
    except _CannotError:
        return ""


class _Lockstep:
    def __init__(self, facts: Facts, axes: list[ThreadAxis], places: list[Edit], found: GuardedBody) -> None:
        self.facts, self.axes, self.places, self.found = facts, axes, places, found
        self.source = facts.source
        self.sharing = Sharing(facts, axes)
        self.returns: list[Node] = []

    def text(self) -> str:
        region = [n for n in self.found.region if not _ends(n)]
        nodes = [*self.found.prefix, *region]
        self._check(nodes)
        pieces = self._pieces(nodes, ())
        self.returns = [r for n in region for r in find(n, "return_statement")]
        self._check_pieces(pieces)
        self.pieces = pieces
        count = " * ".join(a.parameter for a in self.axes)
        body = "".join(self._emit(p) for p in pieces)
        test = self._test_of_guards()
        hoisted = "".join(self._hoisted())
        return f"#if {count} > 1\nint {FULL} = 1;\n{test}if ({FULL}) {{\n{hoisted}{body}return;\n}}\n#endif\n"

    def _check(self, nodes: list[Node]) -> None:
        kinds = ("goto_statement", "labeled_statement", "lambda_expression")
        if any(find(n, *kinds) or any(c.type.startswith("preproc") for c in walk(n)) for n in nodes):
            raise _CannotError
        if any(touches(self.facts, c) for c, _ in self.found.guards):
            raise _CannotError

    def _check_pieces(self, pieces: tuple[_Piece, ...]) -> None:
        """Raises `_CannotError` if the pieces are not the same for all elements, or gain nothing."""
        if self.returns and (self._jumps() or len(pieces) > 1 or self.sharing.loops):
            raise _CannotError
        shared = {v for n in self.sharing.loops for p in header(n) for v in self.sharing.assigned_in(p)}
        gains = self.sharing.loops or any(a.near for a in self.axes)
        if not (gains and self._straights(pieces) and all(self.sharing.counts(v) for v in shared)):
            raise _CannotError

    def _jumps(self) -> bool:
        """True if a return would leave a loop of the kernel."""
        around = (a for r in self.returns for a in ancestors(r) if contains(self.source.body, a))
        return any(a.type in LOOPS for a in around)

    def _test_of_guards(self) -> str:
        """Code that clears `FULL` unless every element passes the kernel's checks; empty without checks."""
        if not self.found.guards:
            return ""
        checks = "".join(
            f"{FULL} = {FULL} && {'' if holds else '!'}({self._render(c.start_byte, c.end_byte)});\n"
            for c, holds in self.found.guards
        )
        guards = [c for c, _ in self.found.guards]
        return f"{self._lanes()}{{\n{self._repeated(guards, None)}{checks}}}\n"

    # What runs together.

    def _pieces(self, nodes: list[Node], outer: tuple[Node, ...]) -> tuple[_Piece, ...]:
        found: list[_Piece] = []
        run: list[Node] = []
        for node in nodes:
            if node.type == "for_statement" and self.sharing.is_uniform(node):
                if run:
                    found.append(_Straight(tuple(run)))
                    run = []
                self.sharing.loops.append(node)
                body = node.child_by_field_name("body")
                assert body is not None
                found.append(_Loop(node, self._pieces(statements(body), (*outer, node))))
            else:
                run.append(node)
        if run:
            found.append(_Straight(tuple(run)))
        return tuple(found)

    # What becomes of the variables.

    def _straights(self, pieces: tuple[_Piece, ...]) -> list[_Straight]:
        found: list[_Straight] = []
        for p in pieces:
            found += [p] if isinstance(p, _Straight) else self._straights(p.body)
        return found

    @cached_property
    def _top(self) -> list[tuple[Node, _Straight]]:
        """Declarations at the top level of a piece."""
        return [(n, s) for s in self._straights(self.pieces) for n in s.nodes if n.type == "declaration"]

    def _stays(self, node: Node, piece: _Straight) -> bool:
        """True if the declared variables are used in their own piece only."""
        return all(
            any(contains(s, use) for s in piece.nodes)
            for v in self.facts.declared_by(node)
            for use in self.sharing.uses(v)
        )

    @cached_property
    def spread(self) -> dict[Node, list[Variable]]:
        """Declarations whose variables need a copy per element, or one copy for all of them."""
        found = {}
        for node, piece in self._top:
            declared = self.facts.declared_by(node)
            if self._stays(node, piece) or all(v in self.sharing.pure for v in declared):
                continue
            for v in declared:
                if (
                    v.is_pointer
                    or v.is_reference
                    or v.type_text == "auto"
                    or (v.is_array and v.init is not None)
                ):
                    raise _CannotError
                if v.init is not None and v.init.type == "initializer_list":
                    raise _CannotError
            found[node] = declared
        return found

    def _index(self) -> str:
        return "".join(f"[{a.item}]" for a in reversed(self.axes))

    @cached_property
    def edits(self) -> list[Edit]:
        """Edits of the elements' indices, and copies of variables that outlive a piece."""
        edits = list(self.places)
        edits += [Edit(n.start_byte, n.start_byte + len("return"), "continue") for n in self.returns]
        dropped = []
        for node, declared in self.spread.items():
            dropped.append(node)
            parts = [
                f"{v.name}{'' if self.sharing.counts(v) else self._index()} = "
                f"{self._with(v.init, self._renames() + self.places)};"
                for v in declared
                if v.init is not None
            ]
            edits.append(Edit(node.start_byte, node.end_byte, " ".join(parts)))
        renames = [e for e in self._renames() if not any(self._covers(n, e) for n in dropped)]
        places = [e for e in edits if e in self.places and any(self._covers(n, e) for n in dropped)]
        return [e for e in edits if e not in places] + renames

    @staticmethod
    def _covers(node: Node, edit: Edit) -> bool:
        return node.start_byte <= edit.start and edit.end <= node.end_byte

    def _renames(self) -> list[Edit]:
        return [
            Edit(n.start_byte, n.end_byte, f"{v.name}{self._index()}")
            for declared in self.spread.values()
            for v in declared
            if not self.sharing.counts(v)
            for n in self.sharing.uses(v)
        ]

    def _hoisted(self) -> list[str]:
        self._distinct(list(self.spread))
        extents = "".join(f"[{a.parameter}]" for a in reversed(self.axes))
        lines = []
        for declared in self.spread.values():
            for v in declared:
                if self.sharing.counts(v):
                    lines.append(f"{v.type_text} {v.name};\n")
                    continue
                text = self.source.of(v.declarator).split("=", 1)[0].strip()
                lines.append(f"{v.type_text} {text.replace(v.name, v.name + extents, 1)};\n")
        headers = [header(n) for n in self.sharing.loops]
        needed = self._needed([n for h in headers for n in h])
        for node, _ in self._top:
            declared = self.facts.declared_by(node)
            if node not in needed or node in self.spread or self.sharing.enclosing(declared[0]):
                continue
            if all(v.init is not None and self.sharing.same(v.init, set()) for v in declared):
                lines.append(self._statement(node) + "\n")
        return lines

    # What is written.

    def _with(self, node: Node, edits: list[Edit]) -> str:
        return self._render(node.start_byte, node.end_byte, edits)

    def _render(self, start: int, end: int, edits: list[Edit] | None = None) -> str:
        inner = [e for e in (self.edits if edits is None else edits) if start <= e.start and e.end <= end]
        moved = [Edit(e.start - start, e.end - start, e.text) for e in inner]
        return apply_edits(self.source.between(start, end), moved)

    def _statement(self, node: Node) -> str:
        """A statement with its address space, which the tree does not contain."""
        space = _SPACE.search(self.source.data[: node.start_byte])
        return self._render(node.start_byte if space is None else space.start(), node.end_byte)

    def _lanes(self) -> str:
        return "".join(
            f"#pragma unroll\nfor (int {a.item} = 0; {a.item} < {a.parameter}; ++{a.item})\n"
            for a in reversed(self.axes)
        )

    def _emit(self, piece: _Piece) -> str:
        if isinstance(piece, _Loop):
            body = piece.node.child_by_field_name("body")
            assert body is not None
            head = self._render(piece.node.start_byte, body.start_byte)
            return f"{head}{{\n{''.join(self._emit(p) for p in piece.body)}}}\n"
        text = "\n".join(self._statement(n) for n in piece.nodes)
        return f"{self._lanes()}{{\n{self._repeated(list(piece.nodes), piece)}{{\n{text}\n}}\n}}\n"

    def _repeated(self, nodes: list[Node], piece: _Straight | None) -> str:
        """Declarations of other pieces that these nodes use."""
        needed = self._needed(nodes)
        own = () if piece is None else piece.nodes
        repeated = [n for n, _ in self._top if n in needed and n not in own and n not in self.spread]
        lines = [self._statement(n) + "\n" for n in repeated]
        if piece is None and any(n in self.spread for n in needed):
            raise _CannotError
        self._distinct(repeated)
        return "".join(lines)

    def _distinct(self, nodes: list[Node]) -> None:
        """Check that names are distinct, since declarations of several scopes end up in one."""
        names = [v.name for n in nodes for v in self.facts.declared_by(n)]
        if len(names) != len(set(names)):
            raise _CannotError

    def _needed(self, nodes: list[Node]) -> set[Node]:
        found: set[Node] = set()
        todo = list(nodes)
        while todo:
            for n in find(todo.pop(), "identifier"):
                v = self.facts.variable(n)
                if v is None or v.is_parameter or v.scope is None or v.declaration in found:
                    continue
                found.add(v.declaration)
                todo.append(v.declaration)
        return found


def _ends(node: Node) -> bool:
    return node.type == "return_statement" and node.named_child_count == 0
