"""Provable facts about a kernel: thread coordinates, pointers, memory accesses, callees."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.calls.callees import HINTED_LOADS, HINTED_STORES, known
from warpsmith.extensions.rules.analysis.calls.unsafe_calls import UnsafeCalls
from warpsmith.extensions.rules.analysis.coordinates import AXES
from warpsmith.extensions.rules.analysis.operations import (
    Inside,
    assignment_to,
    element_of,
    operands,
    operator,
    part_of,
    use,
)
from warpsmith.source.tree.syntax_tree import LOOPS, Source, Variable, ancestors, contains, find, strip

__all__ = ["AXES", "Access", "Facts"]

_USING = ("subscript_expression", "pointer_expression", "field_expression", "call_expression", "identifier")


@dataclass(frozen=True)
class Access:
    """A use of memory through a pointer or array."""

    root: Variable | None
    """The parameter or array that the pointer points into; None if unclear."""
    reads: bool
    writes: bool
    node: Node
    pointer: Node
    index: Node | None
    """The index of `p[index]`; None for `*p` or a whole pointer passed to a function."""

    @property
    def places(self) -> tuple[Node, ...]:
        """The pointer, and the index if there is one."""
        return (self.pointer,) if self.index is None else (self.pointer, self.index)

    def where(self, source: Source) -> str:
        """Pointer and index as text: equal texts in one scope are equal addresses."""
        index = "" if self.index is None else source.of(self.index)
        return re.sub(r"\s+", "", f"{source.of(self.pointer)}[{index}]")


class Facts(UnsafeCalls):
    """Answers about one kernel."""

    def root(self, node: Node, depth: int = 0) -> Variable | None:
        """The parameter or array that a pointer expression points into; None if unclear."""
        node = strip(node)
        inner: Node | None = None
        match node.type:
            case "identifier":
                return self._root_of_variable(node, depth)
            case "binary_expression" if operator(node) in "+-":
                found = [r for o in operands(node) if (r := self.root(o, depth))]
                return found[0] if len(found) == 1 else None
            case "pointer_expression" if operator(node) == "&":
                value = node.child_by_field_name("argument")
                return None if value is None else self._root_of_lvalue(value, depth)
            case "cast_expression" | "pointer_expression":
                inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
            case "field_expression" if self.inside(node) is Inside.ARRAY:
                return self._root_of_lvalue(node, depth)
            case "call_expression" if self.source.callee(node).endswith("_cast"):
                inner = self.source.arguments(node)[0]
        return None if inner is None else self.root(inner, depth)

    def _root_of_lvalue(self, node: Node, depth: int = 0) -> Variable | None:
        """The parameter or array in which an lvalue lies, such as `x` for `x[i].array[0].field`."""
        node = strip(node)
        while node.type == "field_expression":
            node = strip(node.child_by_field_name("argument") or node.children[0])
        return self.root(node, depth)

    def _root_of_variable(self, identifier: Node, depth: int) -> Variable | None:
        v = self.variable(identifier)
        if v is None or not (v.is_pointer or v.is_array or v.type_text == "auto"):
            return None
        if v.is_array:
            return v
        if self.assigned(v):
            return None if depth > 16 else self._root_at(v, identifier, depth)
        if v.is_parameter:
            return v
        return None if v.init is None or depth > 16 else self.root(v.init, depth + 1)

    def _root_at(self, v: Variable, at: Node, depth: int) -> Variable | None:
        """The buffer to which a pointer points at `at`, if only statements without a condition set it, each
        to another buffer: so accesses with the same text and the same buffer have the same address."""
        if v.is_reference:
            return None
        if v.is_parameter:
            return v if self._moved_first(v) else None
        values = self._set_straight(v)
        if values is None or any(contains(s, at) for s, _ in values):
            return None
        if v.init is not None:
            values.insert(0, (v.declaration, v.init))
        found = [(statement, self.root(value, depth + 1)) for statement, value in values]
        if len({r.name for _, r in found if r is not None}) < len(found):
            return None
        before = [r for s, r in found if v.declaration.end_byte <= s.end_byte <= at.start_byte]
        return [None if v.init is None else found[0][1], *before][-1]

    def _set_straight(self, v: Variable) -> list[tuple[Node, Node]] | None:
        """The statements that set a variable, with the values; None if one has a condition, or another
        operator than `=`."""
        found = []
        for place in self.assigned(v):
            changed = assignment_to(place)
            if changed is None or operator(changed[0]) != "=" or not self._is_straight(changed[1]):
                return None
            found.append((changed[1], operands(changed[0])[1]))
        return found

    def _is_straight(self, statement: Node) -> bool:
        """True if nothing but blocks without a condition stands around a statement of the kernel."""
        for a in ancestors(statement):
            if a == self.source.body:
                return True
            if a.type != "compound_statement":
                return False
        return False

    def _moved_first(self, v: Variable) -> bool:
        """True if a pointer that the kernel was given is only moved within its buffer, outside of loops and
        before anything else uses it."""
        statements = []
        for place in self.assigned(v):
            changed = assignment_to(place)
            if changed is None or operator(changed[0]) not in ("+=", "-="):
                return False
            if any(a.type in LOOPS for a in ancestors(changed[1])):
                return False
            statements.append(changed[0])
        last = max(n.end_byte for n in statements)
        moved = {operands(n)[0].id for n in statements}
        uses = self.names_of(v, self.source.body)
        return all(n.id in moved or n.start_byte >= last for n in uses)

    def is_volatile(self, v: Variable) -> bool:
        """True if a variable, or what it points to, is declared `volatile`."""
        return "volatile" in self.source.of(v.declaration).split()

    def is_pointerish(self, node: Node) -> bool:
        """True if a value passed to a function may be an address."""
        node = strip(node)
        if node.type == "pointer_expression":
            return self.source.of(node).startswith("&")
        if node.type == "identifier":
            v = self.variable(node)
            return v is not None and (
                v.is_pointer or v.is_array or (v.type_text == "auto" and bool(self.root(node)))
            )
        if node.type == "binary_expression" and operator(node) in "+-":
            return any(self.is_pointerish(o) for o in operands(node))
        if node.type == "cast_expression":
            return "*" in self.source.of(node).split(")")[0]
        return node.type == "call_expression" and self.source.callee(node) == "reinterpret_cast"

    def accesses(self, node: Node) -> Iterator[Access]:
        """Every use of memory under `node`, private arrays included."""
        for n in find(node, *_USING):
            if n not in self._accesses:
                self._accesses[n] = tuple(self._accesses_at(n))
            yield from self._accesses[n]

    @cached_property
    def _accesses(self) -> dict[Node, tuple[Access, ...]]:
        """Accesses of the nodes asked about so far: every rule asks again, for loops and for their parts."""
        return {}

    def _accesses_at(self, n: Node) -> Iterator[Access]:
        match n.type:
            case "subscript_expression":
                yield from self._element_access(n)
            case "pointer_expression" if self.source.of(n).startswith("*"):
                yield from self._pointed_access(n)
            case "field_expression" if "->" in self.source.of(n):
                yield from self._pointed_access(n)
            case "call_expression":
                yield from self._call_accesses(n)
            case "identifier" if use(n, self.inside)[1]:
                v = self.variable(n)
                if v is not None and v.is_reference:
                    root = None if v.init is None else self._root_of_lvalue(v.init)
                    yield Access(root, True, True, n, n, None)

    def _element_access(self, n: Node) -> Iterator[Access]:
        """`p[i]`; of `p[i][j]` the whole."""
        parent = n.parent
        if parent is not None and parent.type == "subscript_expression" and parent.child(0) == n:
            return
        if parent is not None and parent.type == "pointer_expression" and self._is_hinted(parent.parent):
            return  # seen at the call
        element = element_of(n)
        if element is None:
            return
        base, index = element
        v = self.variable(strip(base))
        if v is not None and not (v.is_pointer or v.is_array or v.type_text == "auto"):
            return  # operator[] of a local object
        if self._is_seen_inside(strip(base)):
            return
        reads, writes = use(n, self.inside)
        yield Access(self.root(base), reads, writes, n, base, index)

    def _is_seen_inside(self, base: Node) -> bool:
        """True if `base[i]` is a part of a private object, which is none of memory, or of an element whose
        own access tells what is done with it."""
        if base.type != "field_expression" or self.inside(base) is not Inside.ARRAY:
            return False
        held: Node = base
        while held.type != "identifier":
            if held.type in ("subscript_expression", "pointer_expression"):
                return True
            whole = part_of(held, self.inside)
            if whole is None:
                return False
            if held.type == "field_expression" and "->" in self.source.between(whole.end_byte, held.end_byte):
                return True
            held = whole
        v = self.variable(held)
        return v is not None and v.scope is not None and not (v.is_shared or v.is_reference or v.is_pointer)

    def _pointed_access(self, n: Node) -> Iterator[Access]:
        """`*p`, `p->field`."""
        argument = n.child_by_field_name("argument")
        if argument is not None:
            reads, writes = use(n, self.inside)
            yield Access(self.root(argument), reads, writes, n, argument, None)

    def _call_accesses(self, call: Node) -> Iterator[Access]:
        name, arguments = self.source.callee(call), self.source.arguments(call)
        if name.endswith("_cast"):
            return
        single = self._vector_access(call, name) or self._hinted_access(call, name)
        if single is not None:
            yield single
            return
        for n, argument in enumerate(arguments):
            # The address of a plain local is seen as an assignment.
            if self.is_pointerish(argument) and not self._is_address_of_local(argument):
                root = self.root(argument)
                reads, writes = _use_of_argument(name, n)
                constant = root is not None and root.is_const
                yield Access(root, reads, writes and not constant, call, argument, None)

    def _is_address_of_local(self, argument: Node) -> bool:
        """True for `&v` of a variable that is no pointer and no array."""
        address = strip(argument)
        v = self.variable(strip(address.child_by_field_name("argument") or address))
        is_plain = v is not None and not (v.is_pointer or v.is_array)
        return address.type == "pointer_expression" and is_plain

    def _vector_access(self, call: Node, name: str) -> Access | None:
        """The elements that OpenCL's `vload4(i, p)` loads, or `vstore4(value, i, p)` stores."""
        arguments, stores = self.source.arguments(call), name.startswith("vstore")
        if not name.startswith(("vload", "vstore")) or len(arguments) != (3 if stores else 2):
            return None
        index, pointer = arguments[-2:]
        return Access(self.root(pointer), not stores, stores, call, pointer, index)

    def _is_hinted(self, arguments: Node | None) -> bool:
        if arguments is None or arguments.type != "argument_list":
            return False
        call = arguments.parent
        if call is None or call.type != "call_expression":
            return False
        return self._hinted_access(call, self.source.callee(call)) is not None

    def _hinted_access(self, call: Node, name: str) -> Access | None:
        """The element that `__ldg(&p[i])`, `__ldcs(p + i)` or `__stcs(p + i, value)` loads or stores."""
        arguments, name = self.source.arguments(call), self._hint_of(name)
        loads = name in HINTED_LOADS
        if not arguments or len(arguments) != (1 if loads else 2) or not (loads or name in HINTED_STORES):
            return None
        base, index = _parts_of_address(strip(arguments[0])) or (None, None)
        v = None if base is None else self.variable(strip(base))
        if base is None or v is None or not (v.is_pointer or v.is_array):
            return None
        return Access(self.root(base), loads, not loads, call, base, index)

    def _hint_of(self, name: str) -> str:
        """The function that a macro stands for, such as `__ldg`; `*(x)` is one as well."""
        if name in HINTED_LOADS or name in HINTED_STORES:
            return name
        pattern = rf"(?m)^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\((\w+)\)[ \t]+(.*?)[ \t]*$"
        bodies = re.findall(pattern, self.source.text)
        loads = [re.fullmatch(rf"(\*|\w+)\s*\({arg}\)", body) for arg, body in bodies]
        known = [m is not None and (m.group(1) == "*" or m.group(1) in HINTED_LOADS) for m in loads]
        return "__ldg" if known and all(known) else name


def _use_of_argument(name: str, position: int) -> tuple[bool, bool]:
    """(reads, writes) of the memory to which an argument of a called function points."""
    callee = known(name)
    if callee is not None and (callee.reads or callee.writes):
        return position in callee.reads, position in callee.writes
    return "store" not in name, "load" not in name


def _parts_of_address(address: Node) -> tuple[Node, Node] | None:
    """Pointer and index of `p + i` and `&p[i]`."""
    if address.type == "binary_expression" and operator(address) == "+":
        return operands(address)
    if address.type == "pointer_expression" and operator(address) == "&":
        return element_of(strip(address.child_by_field_name("argument") or address))
    return None
