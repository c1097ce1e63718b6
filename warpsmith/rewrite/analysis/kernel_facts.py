"""Provable facts about a kernel: thread coordinates, pointers, memory accesses, callees."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from warpsmith.rewrite.analysis.operations import operands, operator, strip_index, use
from warpsmith.rewrite.analysis.side_effects import is_known_pure, is_plain_assembly, synchronises
from warpsmith.rewrite.source.syntax_tree import Source, Variable, find, plain, strip, walk

_CUDA = {"threadIdx": "tid", "blockIdx": "bid", "blockDim": "bdim", "gridDim": "gdim"}
_OPENCL = {
    "get_local_id": "tid",
    "get_group_id": "bid",
    "get_local_size": "bdim",
    "get_num_groups": "gdim",
    "get_global_id": "gid",
    "get_global_size": "gsize",
}
_WIDE = re.compile(
    r"int|unsigned(?:int)?|uint|ulong|(?:unsigned)?(?:long)?long|size_t|ptrdiff_t|u?int(?:32|64)_t"
)
"""Integers that hold every index of a thread."""
AXES = "xyz"
ROW_START, ROW_STEP, ROW_PART = "WS_ROW_START", "WS_ROW_STEP", "WS_ROW_PART"


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


class Facts:
    """Answers about one kernel."""

    def __init__(
        self, source: Source, block: tuple[str, ...], entry: str, grid: tuple[str, ...] = ("", "", "")
    ) -> None:
        self.source = source
        self.block = block
        """Texts of the launch's block extents: a macro that equals one of them is that extent."""
        self.entry = entry
        self.grid = grid
        """Texts of the launch's grid extents: along an axis with one block only, its index is 0."""

    def variable(self, node: Node) -> Variable | None:
        """The declaration that an identifier refers to."""
        return self.source.lookup(self.source.of(node), node) if node.type == "identifier" else None

    def assigned(self, v: Variable) -> list[Node]:
        """Nodes that may change the value of a variable after its declaration."""
        return [n for n in self._changes.get(v.name, ()) if self.source.lookup(v.name, n) == v]

    @cached_property
    def _changes(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in walk(self.source.root):
            target = self._holder(self._changed(node))
            if target is not None and target.type == "identifier":
                found.setdefault(self.source.of(target), []).append(target)
        return found

    def _changed(self, node: Node) -> Node | None:
        """What an expression may change: an assignment's left side, what has its address taken, an object."""
        match node.type:
            case "assignment_expression":
                return node.child_by_field_name("left")
            case "update_expression":
                return node.child_by_field_name("argument")
            case "pointer_expression" if self.source.of(node).startswith("&"):
                return node.child_by_field_name("argument")
            case "call_expression":
                function = node.child_by_field_name("function")
                if function is not None and function.type == "field_expression":
                    return function.child_by_field_name("argument")
        return None

    def _holder(self, target: Node | None) -> Node | None:
        """The variable that holds a field or an element; None for what a pointer points to."""
        while target is not None and target.type in ("field_expression", "parenthesized_expression"):
            target = target.child_by_field_name("argument") or target.named_child(0)
        if target is None or target.type != "subscript_expression":
            return target
        while target is not None and target.type == "subscript_expression":
            target = target.child_by_field_name("argument")
        v = None if target is None else self.variable(target)
        return None if v is not None and v.is_pointer else target

    def value_of(self, node: Node) -> Node | None:
        """The initialiser of a local that never changes; else None."""
        v = self.variable(node)
        if v is None or v.init is None or v.is_array or self.assigned(v):
            return None
        return v.init

    def coordinate(self, node: Node, depth: int = 0) -> str | None:
        """`tid.x`, `bid.x`, `bdim.x`, `gdim.x`, `gid.x` or `gsize.x` if the node is exactly that; else
        None."""
        node = strip(node)
        text = re.sub(r"\s+", "", self.source.of(node))
        if node.type == "identifier":
            text = self._aliases.get(text, text)
            if text in self.block:
                return f"bdim.{AXES[self.block.index(text)]}"
        if node.type == "field_expression":
            base, _, axis = text.partition(".")
            return f"{_CUDA[base]}.{axis}" if base in _CUDA and axis in AXES else None
        if node.type == "call_expression":
            name, arguments = self.source.callee(node), self.source.arguments(node)
            if len(arguments) == 1 and (_WIDE.fullmatch(name) or name == "static_cast"):
                return self._of_cast(node, arguments[0], depth)
            if name in (ROW_START, ROW_STEP):
                return self.coordinate(arguments[0], depth)
            if name in _OPENCL and len(arguments) == 1 and self.source.of(arguments[0]) in ("0", "1", "2"):
                return f"{_OPENCL[name]}.{AXES[int(self.source.of(arguments[0]))]}"
            return None
        if node.type == "cast_expression":
            value = node.child_by_field_name("value")
            return None if value is None else self.coordinate(value, depth)
        if node.type == "identifier" and depth < 8:
            value = self.value_of(node)
            return None if value is None else self.coordinate(value, depth + 1)
        if node.type == "binary_expression":
            return self._global_id(node, depth)
        return None

    def _of_cast(self, call: Node, value: Node, depth: int) -> str | None:
        """The coordinate in `int64_t(value)` or `static_cast<int>(value)`; narrow types hold none."""
        kind = re.sub(r"\s*\(.*|\s+|static_cast<|std::|>", "", self.source.of(call), flags=re.S)
        return self.coordinate(value, depth) if _WIDE.fullmatch(kind) else None

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """Macros that are another name: `#define BLOCK WS_BLOCK`."""
        pattern = r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([A-Za-z_]\w*)[ \t]*$"
        return dict(re.findall(pattern, self.source.text, re.M))

    @cached_property
    def _zeros(self) -> frozenset[str]:
        """Coordinates that are 0 for every thread of the launch."""
        flat = {a for n, a in enumerate(AXES) if self.grid[n : n + 1] in ((), ("1",))}
        single = {a for n, a in enumerate(AXES) if self.block[n : n + 1] in ((), ("1",))}
        return frozenset(
            {f"bid.{a}" for a in flat} | {f"tid.{a}" for a in single} | {f"gid.{a}" for a in flat & single}
        )

    def is_zero(self, node: Node) -> bool:
        """True if a value is 0 for every thread, because the launch has one block along an axis."""
        node = strip(node)
        if node.type == "binary_expression" and operator(node) == "*":
            return any(self.is_zero(o) for o in operands(node))
        return node.type in ("call_expression", "field_expression") and self.coordinate(node) in self._zeros

    def _global_id(self, node: Node, depth: int) -> str | None:
        left, right = operands(node)
        if operator(node) == "+":
            for a, b in ((left, right), (right, left)):
                if self.is_zero(a):
                    return self.coordinate(b, depth)
            for first, b in ((left, right), (right, left)):
                tid, a = self.coordinate(b, depth), strip(first)
                if tid and tid.startswith("tid.") and a.type == "binary_expression" and operator(a) == "*":
                    parts = {self.coordinate(o, depth) for o in operands(a)}
                    if parts == {f"bid.{tid[-1]}", f"bdim.{tid[-1]}"}:
                        return f"gid.{tid[-1]}"
        if operator(node) == "*":
            parts = {self.coordinate(o, depth) for o in (left, right)}
            for axis in AXES:
                if parts == {f"gdim.{axis}", f"bdim.{axis}"}:
                    return f"gsize.{axis}"
        return None

    def uses(self, kind: str, axis: str | None = None) -> bool:
        """True if a coordinate is read anywhere in the kernel or in the functions that it calls."""
        for function in self.source.reachable:
            for node in find(function, "field_expression", "call_expression"):
                name = self.coordinate(node)
                if name and name[:-2] == kind and axis in (None, name[-1]):
                    return True
        return False

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
            case "cast_expression" | "pointer_expression":
                inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
            case "call_expression" if self.source.callee(node).endswith("_cast"):
                inner = self.source.arguments(node)[0]
        return None if inner is None else self.root(inner, depth)

    def _root_of_variable(self, identifier: Node, depth: int) -> Variable | None:
        v = self.variable(identifier)
        if v is None or not (v.is_pointer or v.is_array or self._is_auto(v)):
            return None
        if v.is_array:
            return v
        if self.assigned(v):
            return None
        if v.is_parameter:
            return v
        return None if v.init is None or depth > 16 else self.root(v.init, depth + 1)

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
                case "identifier" if use(n)[1]:
                    v = self.variable(n)
                    if v is not None and v.is_reference:
                        yield Access(None if v.init is None else self.root(v.init), True, True, n, n, None)

    def _element_access(self, n: Node) -> Iterator[Access]:
        """`p[i]`; of `p[i][j]` the whole."""
        parent = n.parent
        if parent is not None and parent.type == "subscript_expression" and parent.child(0) == n:
            return
        base, indices = n.child_by_field_name("argument"), n.child_by_field_name("indices")
        if base is None or indices is None:
            return
        v = self.variable(strip(base))
        if v is not None and not (v.is_pointer or v.is_array or self._is_auto(v)):
            return  # operator[] of a local object
        reads, writes = use(n)
        yield Access(self.root(base), reads, writes, n, base, strip_index(indices))

    def _pointed_access(self, n: Node) -> Iterator[Access]:
        """`*p`, `p->field`."""
        argument = n.child_by_field_name("argument")
        if argument is not None:
            reads, writes = use(n)
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
        for argument in arguments:
            if self.is_pointerish(argument):
                inner = strip(argument)
                v = self.variable(strip(inner.child_by_field_name("argument") or inner))
                if inner.type == "pointer_expression" and v is not None and not (v.is_pointer or v.is_array):
                    continue  # address of a plain local: seen as an assignment
                root = self.root(argument)
                constant = (root is not None and root.is_const) or "load" in name
                yield Access(root, "store" not in name, not constant, call, argument, None)

    def unsafe(self, node: Node) -> str | None:
        """The reason why the code under `node` must not be moved or repeated; None if it may be."""
        return self._unsafe(node, set(), own=True)

    def _unsafe(self, node: Node, seen: set[str], *, own: bool) -> str | None:
        for n in walk(node):
            if n.type == "gnu_asm_expression" and not is_plain_assembly(plain(n)):
                return "it has inline assembly"
            if n.type != "call_expression":
                continue
            name = self.source.callee(n)
            if synchronises(name):
                return f"it calls {name}"
            if name in seen or is_known_pure(name) or self._is_cast(name):
                continue
            seen.add(name)
            reason = self._callee_unsafe(n, name, seen, own=own)
            if reason:
                return reason
        return None

    def _callee_unsafe(self, call: Node, name: str, seen: set[str], *, own: bool) -> str | None:
        bodies = [(b, True) for b in self.source.definitions(name)]
        bodies = bodies or [(b, False) for b in self.source.library_definitions(name)]
        if not bodies and not (own and self._is_local_object(name, call)) and not self._is_plain_macro(name):
            return f"it calls {name}, whose definition is not in the source"
        for body, is_own in bodies:
            reason = self._unsafe(body, seen, own=is_own)
            if reason:
                return f"{reason} (in {name})"
            if "__shared__" in plain(body):
                return f"{name} uses shared memory"
        return None

    def _is_cast(self, name: str) -> bool:
        """True for `(fp)` of `(fp)(x)`, if `fp` is a type or a macro for a known type."""
        word = re.fullmatch(r"\((\w+)\)", name)
        if word is None:
            return False
        typed = (
            rf"(?m)\btypedef\s[^;{{}}()]*\b{word.group(1)}\s*;|^[ \t]*#[ \t]*define[ \t]+{word.group(1)}[ \t]"
        )
        typed += r"+(?:float|double|half|int|uint|long)[ \t]*(?://.*|/\*.*)?$"
        return re.search(typed, self.source.text) is not None

    def _is_local_object(self, name: str, call: Node) -> bool:
        """True for a call of a local lambda (whose body is walked in place) or of a plain object."""
        v = self.source.lookup(name, call)
        return v is not None and not v.is_pointer and not v.is_parameter

    def _is_plain_macro(self, name: str) -> bool:
        """True for a macro that only calls pure functions and assigns nothing."""
        pattern = rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\([^)]*\)((?:[^\n]*\\\n)*[^\n]*)"
        bodies = [
            b for text in (self.source.text, *self.source.library) for b in re.findall(pattern, text, re.M)
        ]
        return bool(bodies) and not any(
            re.search(r"[^=!<>]=[^=]", body)
            or any(not is_known_pure(word) for word in re.findall(r"(\w+)\s*\(", body))
            for body in bodies
        )
