"""A thread's coordinates in a kernel, and the variables that hold them."""

import re
from collections.abc import Iterator
from functools import cached_property

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.operations import (
    Inside,
    both_ways,
    object_of,
    operands,
    operator,
    part_of,
)
from warpsmith.extensions.rules.preparation.reference_parameters import (
    is_changeable,
    parameters_of,
)
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.tree.syntax_tree import Source, Variable, ancestors, contains, find, plain, strip

_CUDA = {"threadIdx": "tid", "blockIdx": "bid", "blockDim": "bdim", "gridDim": "gdim"}
OPENCL_FUNCTIONS = {
    "get_local_id": "tid",
    "get_group_id": "bid",
    "get_local_size": "bdim",
    "get_num_groups": "gdim",
    "get_global_id": "gid",
    "get_global_size": "gsize",
}
"""Kinds of coordinates by the functions of OpenCL that give them."""
_WIDE = re.compile(
    r"int|unsigned(?:int)?|uint|ulong|(?:unsigned)?(?:long)?long|size_t|ptrdiff_t|u?int(?:32|64)_t"
)
"""Integers that hold every index of a thread."""
_QUESTIONS = frozenset(("thread_rank", "meta_group_rank", "num_threads", "size"))
"""Methods that change nothing: of cooperative groups, and the size of an object."""
_CHANGING = ("assignment_expression", "update_expression", "pointer_expression", "call_expression")
AXES = "xyz"
ROW_START, ROW_STEP = "WS_ROW_START", "WS_ROW_STEP"


class Coordinates:
    """Answers about the variables of one kernel and about its threads' coordinates."""

    def __init__(
        self, source: Source, block: tuple[str, ...], entry: str, grid: tuple[str, ...] = ("", "", "")
    ) -> None:
        self.source = source
        self.block = block
        """Texts of the launch's block extents: a macro that equals one of them is that extent."""
        self.entry = entry
        self.grid = grid
        """Texts of the launch's grid extents: along an axis with one block only, its index is 0."""
        self._found: dict[tuple[int, int], str | None] = {}
        """Answers of `coordinate`: locals made of locals would ask for the same again and again."""

    def variable(self, node: Node) -> Variable | None:
        """The declaration that an identifier refers to."""
        return self.source.lookup(self.source.of(node), node) if node.type == "identifier" else None

    def assigned(self, v: Variable) -> list[Node]:
        """Nodes that may change the value of a variable after its declaration."""
        return [n for n in self._changes.get(v.name, ()) if self.source.lookup(v.name, n) == v]

    @property
    def is_opencl(self) -> bool:
        """True for OpenCL C."""
        return self.source.backend.language.is_opencl_c

    def changes_in(self, v: Variable, node: Node) -> bool:
        """True if code under a node may change a variable."""
        return any(contains(node, place) for place in self.assigned(v))

    def variables_in(self, node: Node) -> list[Variable]:
        """Variables that identifiers under a node refer to, one for each identifier."""
        return [v for n in find(node, "identifier") if (v := self.variable(n)) is not None]

    def names_of(self, v: Variable, node: Node) -> list[Node]:
        """Identifiers under a node that refer to a variable."""
        return [n for n in find(node, "identifier") if self.variable(n) == v]

    def declared_by(self, declaration: Node) -> list[Variable]:
        """Variables of a declaration."""
        return [v for v in self.source.variables if v.declaration == declaration]

    def initialised_by(self, value: Node) -> Variable | None:
        """The variable whose initialiser is a value; None if there is none."""
        value, made = strip(value), (v for v in self.source.variables if v.init is not None)
        return next((v for v in made if v.init is not None and strip(v.init) == value), None)

    @cached_property
    def _changes(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in find(self.source.root, *_CHANGING):
            for changed in (self._changed(node), *self._taken_by_reference(node)):
                target = self._holder(changed)
                if target is not None and target.type == "identifier":
                    found.setdefault(self.source.of(target), []).append(target)
        return found

    def _taken_by_reference(self, node: Node) -> Iterator[Node]:
        """Arguments of a call that the called function takes by a reference through which it may change
        them."""
        if node.type != "call_expression":
            return
        name, arguments = self.source.callee(node), self.source.arguments(node)
        for function in (*self.source.definitions(name), *self.source.library_definitions(name)):
            for parameter, argument in zip(parameters_of(function), arguments, strict=False):
                if is_changeable(parameter):
                    yield argument

    def _changed(self, node: Node) -> Node | None:
        """Operand that an expression may change: left side of an assignment, operand of `&`, an object."""
        match node.type:
            case "assignment_expression":
                return node.child_by_field_name("left")
            case "update_expression":
                return node.child_by_field_name("argument")
            case "pointer_expression" if self.source.of(node).startswith("&"):
                return node.child_by_field_name("argument")
            case "call_expression":
                return None if self.source.callee(node) in _QUESTIONS else object_of(node)
        return None

    def _holder(self, target: Node | None) -> Node | None:
        """The variable that holds a field or an element; None for what a pointer points to."""
        while target is not None and (whole := part_of(target, self.inside)) is not None:
            reached = (
                target.type == "pointer_expression"
                or "->" in plain(target)[whole.end_byte - target.start_byte :]
            )
            v = self.variable(strip(whole))
            if (v is not None and v.is_pointer and target.type == "subscript_expression") or reached:
                return None
            target = whole
        return target

    def inside(self, field: Node) -> Inside:
        """Kind of a field expression's field, by all fields of that name in the source and its headers."""
        name = field.child_by_field_name("field")
        return self._fields.get("" if name is None else self.source.of(name), Inside.UNKNOWN)

    @cached_property
    def _fields(self) -> dict[str, Inside]:
        found: dict[str, Inside] = {}
        roots = (self.source.root, *self.source.library_roots())
        arrays = {name for root in roots for name in _names_of_arrays(root)}
        for declaration in (d for root in roots for d in find(root, "field_declaration")):
            of_type = declaration.child_by_field_name("type")
            is_array = of_type is not None and plain(of_type) in arrays
            for declarator in declaration.children_by_field_name("declarator"):
                for name in find(declarator, "field_identifier"):
                    kind = _kind_of_field(name)
                    kind = Inside.ARRAY if is_array and kind is Inside.UNKNOWN else kind
                    text = plain(name)
                    found[text] = kind if found.get(text, kind) is kind else Inside.UNKNOWN
        return found

    def value_of(self, node: Node) -> Node | None:
        """The initialiser of a local that never changes; else None."""
        v = self.variable(node)
        if v is None or v.init is None or v.is_array or self.assigned(v):
            return None
        return v.init

    def coordinate(self, node: Node, depth: int = 0) -> str | None:
        """`tid.x`, `bid.x`, `bdim.x`, `gdim.x`, `gid.x` or `gsize.x` if the node is exactly that; else
        None."""
        key = (node.id, depth)
        if key not in self._found:
            self._found[key] = self._coordinate(node, depth)
        return self._found[key]

    def _coordinate(self, node: Node, depth: int) -> str | None:
        node = strip(node)
        match node.type:
            case "identifier":
                return self._of_name(node, depth)
            case "field_expression":
                base, _, axis = re.sub(r"\s+", "", self.source.of(node)).partition(".")
                return f"{_CUDA[base]}.{axis}" if base in _CUDA and axis in AXES else None
            case "call_expression":
                return self._of_call(node, depth)
            case "cast_expression":
                return self._of_cast(node, depth)
            case "binary_expression":
                return self._global_id(node, depth)
        return None

    def _of_name(self, node: Node, depth: int) -> str | None:
        """The coordinate that a macro, a template parameter or a local stands for."""
        name = self.source.of(node)
        extent = self._bound_to_extent(node, self._aliases.get(name, name))
        if extent in self.block:
            return f"bdim.{AXES[self.block.index(extent)]}"
        value = self.value_of(node) if depth < 8 else None
        return None if value is None else self.coordinate(value, depth + 1)

    def _of_call(self, node: Node, depth: int) -> str | None:
        """The coordinate that a function of OpenCL, a word of a rule or a cast in C++'s spelling gives."""
        name, arguments = self.source.callee(node), self.source.arguments(node)
        if name in (ROW_START, ROW_STEP):
            return self.coordinate(arguments[0], depth)
        if len(arguments) != 1:
            return None
        if _WIDE.fullmatch(name) or name == "static_cast":
            return self._of_static_cast(node, arguments[0], depth)
        kind, number = OPENCL_FUNCTIONS.get(name), self.source.of(arguments[0])
        return f"{kind}.{AXES[int(number)]}" if kind is not None and number in ("0", "1", "2") else None

    def _of_cast(self, node: Node, depth: int) -> str | None:
        """The coordinate in `(int)value`; types of less than 32 bits hold none."""
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        dtype = None if kind is None else element_type(self.source.of(kind), {})[0]
        cut = dtype is not None and dtype.size_bytes < 4
        return None if value is None or cut else self.coordinate(value, depth)

    def _bound_to_extent(self, node: Node, name: str) -> str:
        """The parameter of the launch that the entry binds to a template parameter of the kernel; else the
        name."""
        own = self.source.kernel.start_byte <= node.start_byte < self.source.kernel.end_byte
        given = self.source.template_argument(name) if own and self.variable(node) is None else ""
        return given if given.isidentifier() else name

    def _of_static_cast(self, call: Node, value: Node, depth: int) -> str | None:
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
        if operator(node) == "+":
            for a, b in both_ways(node):
                if self.is_zero(a):
                    return self.coordinate(b, depth)
            for first, b in both_ways(node):
                tid, a = self.coordinate(b, depth), strip(first)
                if tid and tid.startswith("tid.") and a.type == "binary_expression" and operator(a) == "*":
                    parts = {self.coordinate(o, depth) for o in operands(a)}
                    if parts == {f"bid.{tid[-1]}", f"bdim.{tid[-1]}"}:
                        return f"gid.{tid[-1]}"
        if operator(node) == "*":
            parts = {self.coordinate(o, depth) for o in operands(node)}
            for axis in AXES:
                if parts == {f"gdim.{axis}", f"bdim.{axis}"}:
                    return f"gsize.{axis}"
        return None

    def uses(self, kind: str, axis: str | None = None) -> bool:
        """True if a coordinate is read anywhere in the kernel or in the functions that it calls."""
        return next(self.uses_of(kind, axis), None) is not None

    def uses_of(self, kind: str, axis: str | None = None) -> Iterator[Node]:
        """Every place in the kernel or in the functions that it calls that reads a coordinate."""
        for function in self.source.reachable:
            for node in find(function, "field_expression", "call_expression"):
                name = self.coordinate(node)
                if name and name[:-2] == kind and axis in (None, name[-1]):
                    yield node


def _kind_of_field(name: Node) -> Inside:
    """By the declarators around a field's name, the innermost of which says what it is."""
    for around in ancestors(name):
        if around.type == "array_declarator":
            return Inside.ARRAY
        if around.type in ("pointer_declarator", "reference_declarator"):
            return Inside.POINTER
        if "declarator" not in around.type:
            break
    return Inside.UNKNOWN


def _names_of_arrays(root: Node) -> Iterator[str]:
    """Names for array types: `typedef float Row[4];`, `using Row = float[4];`."""
    for node in find(root, "type_definition", "alias_declaration"):
        if find(node, "array_declarator", "abstract_array_declarator"):
            yield from (plain(n) for n in find(node, "type_identifier"))
