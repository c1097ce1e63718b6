"""Objects of a class, such as packs of 16 bytes, that several strided loops load from the same place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import StridedLoop, place_text
from warpsmith.extensions.rules.analysis.operations import object_of
from warpsmith.source.tree.syntax_tree import Edit, Source, Variable, find, strip

_VECTORS = re.compile(
    r"u?(?:char|short|int|long|longlong)[1-4]|float[1-4]|double[1-4]|half2|__half2|__nv_bfloat162"
)


@dataclass(frozen=True)
class Loaded:
    """A local that every iteration of a loop loads first thing, and that nothing else has set before."""

    variable: Variable
    statement: Node
    """`v.load(p);`, or the declaration `T v = load(p);`."""
    access: Access

    @property
    def declares(self) -> bool:
        """True if the declaration loads it."""
        return self.statement == self.variable.declaration

    def edits(self, source: Source, base: int, place: str, *, is_new: bool) -> Iterator[Edit]:
        """Edits of a text that begins at byte `base`: the object is copied to a place, or taken from it."""
        end = self.statement.end_byte - base
        if is_new:
            yield Edit(end, end, f" {place} = {self.variable.name};")
        elif self.declares:
            assert self.variable.init is not None
            yield Edit(self.variable.init.start_byte - base, self.variable.init.end_byte - base, place)
        else:
            yield Edit(self.statement.start_byte - base, end, f"{self.variable.name} = {place};")


@dataclass(frozen=True)
class KeptObject:
    """An object that several loops of a chain load from the same place."""

    kind: str
    """Its type, as the loops name it."""
    uses: tuple[tuple[int, Loaded], ...]
    """Number of the loop, and the object; in the order of the loops."""

    def of(self, loop: int) -> Loaded | None:
        """The object of a loop."""
        return next((loaded for n, loaded in self.uses if n == loop), None)


def kept_objects(facts: Facts, loops: Sequence[StridedLoop]) -> tuple[KeptObject, ...]:
    """Objects that two loops or more load from the same place, where no thread ever writes."""
    by: dict[tuple[str, str, str], list[tuple[int, Loaded]]] = {}
    written = {a.root.name for a in facts.accesses(facts.source.body) if a.writes and a.root is not None}
    for n, loop in enumerate(loops):
        for loaded in (x for x in _loaded(facts, loop) if _is_steady(facts, x.access.root, written)):
            way = (loaded.variable.type_text, facts.source.callee(loaded.access.node))
            by.setdefault((*way, place_text(facts, loop, loaded.access.pointer)), []).append((n, loaded))
    bodies = [loop.body for loop in loops]
    return tuple(
        KeptObject(kind, tuple(uses))
        for (kind, _, _), uses in by.items()
        if 1 < len({n for n, _ in uses}) == len(uses) and is_named(facts, kind, bodies)
    )


def _is_steady(facts: Facts, root: Variable | None, written: set[str]) -> bool:
    """True for a buffer that no thread writes."""
    steady = root is not None and root.is_parameter and root.name not in written
    return steady and root is not None and not facts.is_volatile(root)


def is_named(facts: Facts, kind: str, bodies: Sequence[Node]) -> bool:
    """True if an object of a type can be declared before loops with these bodies, without a value."""
    if _VECTORS.fullmatch(kind):
        return True
    inside = rf"\busing\s+{re.escape(kind)}\b|\btypedef\b[^;]*\b{re.escape(kind)}\s*;"
    if kind.endswith("auto") or any(re.search(inside, facts.source.of(body)) for body in bodies):
        return False
    return re.search(rf"(?<![\w:]){re.escape(kind)}\s+\w+\s*[;,]", facts.source.text) is not None


def _loaded(facts: Facts, loop: StridedLoop) -> Iterator[Loaded]:
    """Objects that statements of the loop's own block load, each from one address."""
    for statement in _statements(loop.body):
        call = _call(facts, statement)
        arguments = [] if call is None else facts.source.arguments(call)
        if call is None or len(arguments) != 1 or find(arguments[0], "call_expression"):
            continue
        access, v = only_read(facts, call), _target(facts, loop, statement, call)
        if v is not None and access is not None and (access.node, access.pointer) == (call, arguments[0]):
            yield Loaded(v, statement, access)


def only_read(facts: Facts, call: Node) -> Access | None:
    """The access of a call that reads one place of memory and writes none; None for any other call."""
    made = [a for a in facts.accesses(call) if a.reads or a.writes]
    return made[0] if len(made) == 1 and not made[0].writes else None


def object_filled(facts: Facts, body: Node, call: Node) -> Variable | None:
    """The local `v` of `v.load(p)` that the block of an iteration declares without a value."""
    holder, function = object_of(call), call.child_by_field_name("function")
    v = None if holder is None else facts.variable(holder)
    if v is None or function is None or "->" in facts.source.of(function):
        return None
    has_value = v.is_pointer or v.is_array or v.is_shared or v.is_reference or v.init is not None
    return v if v.declaration.parent == body and not has_value else None


def _statements(block: Node) -> Iterator[Node]:
    """Statements that every execution of a block executes, those of plain blocks inside included."""
    for n in block.named_children if block.type == "compound_statement" else ():
        yield from _statements(n) if n.type == "compound_statement" else (n,)


def _call(facts: Facts, statement: Node) -> Node | None:
    """The call of `v.load(p);` or of `T v = load(p);`."""
    mine = facts.declared_by(statement)
    inner = mine[0].init if len(mine) == 1 else None
    if statement.type == "expression_statement":
        inner = statement.named_child(0)
    call = None if inner is None else strip(inner)
    return call if call is not None and call.type == "call_expression" else None


def _target(facts: Facts, loop: StridedLoop, statement: Node, call: Node) -> Variable | None:
    """The local that a statement loads, if nothing uses it before."""
    if statement.type == "declaration":
        made = next(iter(facts.declared_by(statement)), None)
        is_address = made is not None and (made.is_pointer or made.is_reference)
        return None if is_address or object_of(call) is not None else made
    v = object_filled(facts, loop.body, call)
    names = [] if v is None else facts.names_of(v, loop.body)
    used = (v.declarator.end_byte < n.start_byte < statement.start_byte for n in names if v is not None)
    return None if any(used) else v
