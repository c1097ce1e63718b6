"""Places in buffers that a kernel uses: an argument, and an index into it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access
from warpsmith.extensions.rules.analysis.operations import element_of, operands, operator
from warpsmith.extensions.scaffold.indices.polynomials import Polynomial, Unknown
from warpsmith.extensions.scaffold.indices.values import IndexValues
from warpsmith.source.tree.syntax_tree import LOOPS, Source, Variable, ancestors, find, strip

_VECTOR = re.compile(r"(\w*?[a-z])(2|3|4|8|16)")
_MOVED = re.compile(r"v(?:load|store)a?(?:_half)?(\d*)(?:_\w+)?")
_ATOMIC = re.compile(r"(?:__)?atom(?:ic)?\w*|__ld\w+|__st\w+")
_BYTES = {
    **dict.fromkeys(("char", "uchar", "unsignedchar", "signedchar", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "ushort", "unsignedshort", "half", "__half", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(("int", "uint", "unsignedint", "unsigned", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("double", "int64_t", "uint64_t", "ulong"), 8),
}
_DEEPEST = 16


@dataclass(frozen=True)
class Unit:
    """Element type that a pointer points to."""

    base: str
    lanes: int

    @property
    def size(self) -> int:
        """Bytes, or lanes of a type that is not known."""
        return _BYTES.get(self.base, 1) * self.lanes

    def fits(self, other: "Unit") -> bool:
        """True if sizes of both are in the same measure."""
        return self.base == other.base or {self.base, other.base} <= _BYTES.keys()

    @staticmethod
    def of(type_text: str) -> "Unit":
        """The unit of a type such as `float4`."""
        plain = re.sub(
            r"\b(?:const|volatile|restrict|__restrict__|__?global|__?local|__?constant)\b|[*&\s]",
            "",
            type_text,
        )
        vector = _VECTOR.fullmatch(plain)
        return Unit(vector.group(1), int(vector.group(2))) if vector else Unit(plain, 1)


@dataclass(frozen=True)
class BufferUse:
    """Access to a buffer at an index."""

    buffer: str
    node: Node
    index: Polynomial
    """Last element that is used, in elements of the buffer's type."""
    words: str
    """The index as the source has it."""
    reads: bool
    writes: bool


@dataclass(frozen=True)
class _Pointer:
    buffer: Variable
    offset: Polynomial
    """In the measure of `Unit.size`."""
    unit: Unit

    def moved(self, step: Polynomial) -> "_Pointer":
        """The pointer some of its elements further."""
        return _Pointer(self.buffer, self.offset + step * Polynomial.number(self.unit.size), self.unit)


def places(values: IndexValues) -> Iterator[BufferUse | tuple[str, Node]]:
    """Uses of arguments; the argument's name and the node if the place is not understood."""
    for access in values.facts.accesses(values.facts.source.body):
        if access.root is not None and not access.root.is_parameter:
            continue
        try:
            yield _place(values, access)
        except Unknown:
            name = access.root.name if access.root is not None else _parameter(values, access.pointer)
            if access.index is not None:
                values.note_memory(access.index)
            yield name, access.node


def _parameter(values: IndexValues, pointer: Node) -> str:
    """An argument that an unclear pointer may lead to; empty if there is none."""
    for n in find(pointer, "identifier"):
        v = values.facts.variable(n)
        if v is None or not v.is_pointer:
            continue
        if v.is_parameter:
            return v.name
        sets = [] if v.init is None else [v.init]
        sets += [
            operands(p.parent)[1]
            for p in values.facts.assigned(v)
            if p.parent is not None and p.parent.type == "assignment_expression"
        ]
        for n2 in (i for s in sets for i in find(s, "identifier")):
            w = values.facts.variable(n2)
            if w is not None and w.is_pointer and w.is_parameter:
                return w.name
    return ""


def _place(values: IndexValues, access: Access) -> BufferUse:
    source = values.facts.source
    pointer = _pointer(values, access.pointer, 0)
    own = Unit.of(pointer.buffer.type_text)
    words, index, further = source.of(access.node), Polynomial(), 0
    moved = _MOVED.fullmatch(source.callee(access.node)) if access.node.type == "call_expression" else None
    if access.index is not None:
        words = source.of(access.index)
        lanes = int(moved.group(1) or 1) if moved else 1
        index, further = values.of(access.index) * Polynomial.number(lanes), lanes - 1
    elif access.node.type == "call_expression" and not _ATOMIC.fullmatch(source.callee(access.node)):
        raise Unknown
    behind = pointer.moved(index + Polynomial.number(further + 1)).offset.divided(Polynomial.number(own.size))
    if behind is None:
        raise Unknown
    last = behind - Polynomial.number(1)
    words = " ".join(words.split())[:60]
    return BufferUse(pointer.buffer.name, access.node, last, words, access.reads, access.writes)


def _pointer(values: IndexValues, node: Node, depth: int) -> _Pointer:
    node = strip(node)
    if depth > _DEEPEST:
        raise Unknown
    match node.type:
        case "identifier":
            return _of_variable(values, node, depth)
        case "binary_expression" if operator(node) in "+-":
            left, right = operands(node)
            if operator(node) == "+" and values.facts.root(left) is None:
                left, right = right, left
            found, step = _pointer(values, left, depth + 1), values.of(right)
            return found.moved(step if operator(node) == "+" else -step)
        case "pointer_expression" if operator(node) == "&":
            base, index = _element(node)
            return _pointer(values, base, depth + 1).moved(values.of(index))
        case "cast_expression" | "call_expression":
            type_text, value = _cast(values.facts.source, node)
            return _as(_pointer(values, value, depth + 1), Unit.of(type_text))
    raise Unknown


def _element(address: Node) -> tuple[Node, Node]:
    """Pointer and index of `&pointer[index]`."""
    element = element_of(strip(address.child_by_field_name("argument") or address.children[-1]))
    if element is None:
        raise Unknown
    return element


def _cast(source: Source, node: Node) -> tuple[str, Node]:
    """The type and the value of `(type)value` or `reinterpret_cast<type>(value)`."""
    if source.callee(node) == "reinterpret_cast":
        kind = re.search(r"<(.*)>", source.of(node.child_by_field_name("function") or node))
        return kind.group(1) if kind else "", source.arguments(node)[0]
    of_type, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if of_type is None or value is None:
        raise Unknown
    return source.of(of_type), value


def _as(pointer: _Pointer, unit: Unit) -> _Pointer:
    if not pointer.unit.fits(unit):
        raise Unknown
    return _Pointer(pointer.buffer, pointer.offset, unit)


def _of_variable(values: IndexValues, node: Node, depth: int) -> _Pointer:
    v = values.facts.variable(node)
    if v is None or v.is_array or not (v.is_pointer or v.type_text == "auto"):
        raise Unknown
    changes = values.facts.assigned(v)
    if v.is_parameter:
        return _Pointer(v, Polynomial(), Unit.of(v.type_text)).moved(_moves(values, changes, node))
    if v.init is None:
        raise Unknown
    found = _pointer(values, v.init, depth + 1)
    if v.type_text != "auto":
        found = _as(found, Unit.of(v.type_text))
    return found.moved(_moves(values, changes, node))


def _moves(values: IndexValues, changes: list[Node], use: Node) -> Polynomial:
    """Elements by which statements without a condition, all before its use, moved a pointer."""
    found = Polynomial()
    for place in changes:
        statement = place.parent
        if statement is None or statement.type != "assignment_expression":
            raise Unknown
        how, top = operator(statement), statement.parent
        around = [a.type for a in ancestors(statement)]
        blocked = any(
            t in (*LOOPS, "if_statement", "conditional_expression", "switch_statement") for t in around
        )
        if how not in ("+=", "-=") or top is None or top.type != "expression_statement" or blocked:
            raise Unknown
        if statement.end_byte <= use.start_byte:
            step = values.of(operands(statement)[1])
            found = found + (step if how == "+=" else -step)
    return found
