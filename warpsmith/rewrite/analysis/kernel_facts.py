"""Provable facts about a kernel: thread coordinates, pointers, memory accesses, callees."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.calls.callees import HINTED_LOADS, HINTED_STORES, known
from warpsmith.rewrite.analysis.calls.unsafe_calls import UnsafeCalls
from warpsmith.rewrite.analysis.coordinates import AXES, ROW_PART, ROW_START, ROW_STEP
from warpsmith.rewrite.analysis.operations import Inside, operands, operator, part_of, strip_index, use
from warpsmith.rewrite.source.syntax_tree import LOOPS, Source, Variable, ancestors, find, strip, walk

__all__ = ["AXES", "ROW_PART", "ROW_START", "ROW_STEP", "Access", "Facts"]


@dataclass(frozen=True)
class Access:
    """One use of memory through a pointer or array."""

    root: Variable | None
    """The parameter or array that the pointer points into; None if unclear."""
    reads: bool
    writes: bool
    node: Node
    pointer: Node
    index: Node | None
    """The index of `p[index]`; None for `*p` or a whole pointer passed to a function."""

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
        if v is None or not (v.is_pointer or v.is_array or self._is_auto(v)):
            return None
        if v.is_array:
            return v
        if self.assigned(v):
            return None if depth > 16 else self._root_at(v, identifier, depth)
        if v.is_parameter:
            return v
        return None if v.init is None or depth > 16 else self.root(v.init, depth + 1)

    def _root_at(self, v: Variable, at: Node, depth: int) -> Variable | None:
        """Where a local pointer points at `at`, if only statements without a condition set it, each to
        another buffer: so accesses with the same text and the same buffer have the same address."""
        if v.is_parameter and not v.is_reference:
            return v if self._moved_first(v) else None
        if v.is_reference:
            return None
        current = None if v.init is None else self.root(v.init, depth + 1)
        end = v.declaration.end_byte
        found = [] if v.init is None else [current]
        for place in self.assigned(v):
            statement = place.parent
            top = None if statement is None else statement.parent
            if statement is None or top is None or statement.type != "assignment_expression":
                return None
            if operator(statement) != "=" or not self._is_straight(top):
                return None
            if top.start_byte <= at.start_byte < top.end_byte:
                return None
            root = self.root(operands(statement)[1], depth + 1)
            found.append(root)
            if end <= top.end_byte <= at.start_byte:
                current, end = root, top.end_byte
        different = None not in found and len({r.name for r in found if r is not None}) == len(found)
        return current if different else None

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
            statement = place.parent
            top = None if statement is None else statement.parent
            if statement is None or top is None or statement.type != "assignment_expression":
                return False
            if operator(statement) not in ("+=", "-=") or any(a.type in LOOPS for a in ancestors(top)):
                return False
            statements.append(statement)
        last = max(n.end_byte for n in statements)
        uses = [n for n in find(self.source.body, "identifier") if self.variable(n) == v]
        moved = {operands(n)[0].id for n in statements}
        return all(n.id in moved or n.start_byte >= last for n in uses)

    @staticmethod
    def _is_auto(v: Variable) -> bool:
        return v.type_text == "auto"

    def is_pointerish(self, node: Node) -> bool:
        """True if a value passed to a function may be an address."""
        node = strip(node)
        if node.type == "pointer_expression":
            return self.source.of(node).startswith("&")
        if node.type == "identifier":
            v = self.variable(node)
            return v is not None and (
                v.is_pointer or v.is_array or (self._is_auto(v) and bool(self.root(node)))
            )
        if node.type == "binary_expression" and operator(node) in "+-":
            return any(self.is_pointerish(o) for o in operands(node))
        if node.type == "cast_expression":
            return "*" in self.source.of(node).split(")")[0]
        return node.type == "call_expression" and self.source.callee(node) == "reinterpret_cast"

    def accesses(self, node: Node) -> Iterator[Access]:
        """Every use of memory under `node`, private arrays included."""
        for n in walk(node):
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
        base, indices = n.child_by_field_name("argument"), n.child_by_field_name("indices")
        if base is None or indices is None:
            return
        v = self.variable(strip(base))
        if v is not None and not (v.is_pointer or v.is_array or self._is_auto(v)):
            return  # operator[] of a local object
        if self._is_seen_inside(strip(base)):
            return
        reads, writes = use(n, self.inside)
        yield Access(self.root(base), reads, writes, n, base, strip_index(indices))

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
        if re.match(r"vload", name) and len(arguments) == 2:
            yield Access(self.root(arguments[1]), True, False, call, arguments[1], arguments[0])
            return
        if re.match(r"vstore", name) and len(arguments) == 3:
            yield Access(self.root(arguments[2]), False, True, call, arguments[2], arguments[1])
            return
        hinted = self._hinted_access(call, name)
        if hinted is not None:
            yield hinted
            return
        callee = known(name)
        for n, argument in enumerate(arguments):
            if self.is_pointerish(argument):
                inner = strip(argument)
                v = self.variable(strip(inner.child_by_field_name("argument") or inner))
                if inner.type == "pointer_expression" and v is not None and not (v.is_pointer or v.is_array):
                    continue  # address of a plain local: seen as an assignment
                root = self.root(argument)
                reads, writes = "store" not in name, "load" not in name
                if callee is not None and (callee.reads or callee.writes):
                    reads, writes = n in callee.reads, n in callee.writes
                constant = root is not None and root.is_const
                yield Access(root, reads, writes and not constant, call, argument, None)

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
        place = strip(arguments[0])
        base: Node | None = None
        index: Node | None = None
        if place.type == "binary_expression" and operator(place) == "+":
            base, index = operands(place)
        elif place.type == "pointer_expression" and self.source.of(place).startswith("&"):
            element = strip(place.child_by_field_name("argument") or place)
            listed = element.child_by_field_name("indices")
            if element.type == "subscript_expression" and listed is not None:
                base, index = element.child_by_field_name("argument"), strip_index(listed)
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
