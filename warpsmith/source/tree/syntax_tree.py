"""A kernel's source as a syntax tree that rules can query and edit.

OpenCL is parsed with the CUDA grammar: address-space words are blanked out, so offsets stay the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from warpsmith.domain.device import Backend
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.lexing.tokens import defined_names
from warpsmith.source.tree.work_limit import spend

_LANGUAGE = Language(tree_sitter_cuda.language())
_OPENCL_WORDS = re.compile(
    rb"\b(?:__kernel|kernel|__global|global|__local|local|__constant|constant|__private|private"
    rb"|__read_only|__write_only|__read_write|restrict)\b"
)
_QUALIFIERS = re.compile(
    rb"\b(?:__restrict__\b|__restrict\b|WS_REGISTERS\b"
    rb"|(?:__maxnreg__|__align__)\s*\((?:[^()]|\([^()]*\))*\))"
)
# `WS_REGISTERS` is what a rule puts before a kernel's name.
LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_CLASSES = ("class_specifier", "struct_specifier", "union_specifier")
_LIMITED = (*_CLASSES, "template_declaration", "function_definition")
_SCOPES = ("compound_statement", "for_statement", "function_definition", "lambda_expression")


@dataclass(frozen=True)
class Edit:
    """Replace the bytes [start, end) by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap; offsets are bytes of `text` as UTF-8.

    Inserted text keeps its meaning: a blank separates two words that an edit would join, and a directive gets
    a line of its own.
    """
    data, end = text.encode(), len(text.encode())
    pieces: list[bytes] = []
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        pieces += [data[edit.end : end], edit.text.encode()]
        end = edit.start
    pieces.append(data[:end])
    joined = bytearray()
    for piece in reversed(pieces):
        if _is_word(bytes(joined[-1:])) and _is_word(piece[:1]):
            joined += b" "
        if piece.startswith(b"#") and joined.rpartition(b"\n")[2].strip():
            joined += b"\n"
        joined += piece
    return joined.decode()


def _is_word(byte: bytes) -> bool:
    """True if an identifier or a number may contain the byte; beyond ASCII any byte may."""
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"


def entry_name(entry: str) -> str:
    """The plain name, such as `kernel` for the name expression `ns::kernel<half, 8>`."""
    return entry.split("<", 1)[0].rsplit("::", maxsplit=1)[-1].strip()


def last_name(text: str) -> str:
    """The last name, such as `cast` for `vec_cast<float, half>::template cast<8>`."""
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"<[^<>]*>", "", text)
    return text.split("::")[-1].removeprefix("template").strip()


def split_arguments(text: str) -> list[str]:
    """Template arguments of a name expression, split at top-level commas."""
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [*parts, current.strip()]


@dataclass(frozen=True)
class Variable:
    """A declared name: parameter, local or file-scope constant."""

    name: str
    type_text: str
    """Type without qualifiers and address spaces."""
    kind: str
    """`type_text`, or the type of numbers that it is another name for."""
    declaration: Node
    declarator: Node
    init: Node | None
    scope: Node | None
    is_pointer: bool
    is_array: bool
    is_shared: bool
    is_const: bool
    """True if the pointee (pointer, array) or the value is const."""
    is_parameter: bool
    is_reference: bool = False
    """True for a C++ reference, which may change its target."""


def walk(node: Node) -> Iterator[Node]:
    """The node and everything under it, in source order."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        count = found.child_count
        spend(1 + count)
        if count:  # most nodes are leaves, and an empty list takes time too
            waiting += found.children[::-1]


def find(node: Node, *kinds: str) -> list[Node]:
    """Every node of these kinds under `node`, itself included."""
    spend(2 * node.descendant_count - 1)
    return [*_found(node, kinds)]


@lru_cache(maxsize=1 << 14)
def _found(node: Node, kinds: tuple[str, ...]) -> tuple[Node, ...]:
    waiting, found = [node], []
    while waiting:
        one = waiting.pop()
        if one.type in kinds:
            found.append(one)
        if one.child_count:
            waiting += one.children[::-1]
    return tuple(found)


def ancestors(node: Node) -> Iterator[Node]:
    """Parents, nearest first."""
    current = node.parent
    while current is not None:
        spend(1)
        yield current
        current = current.parent


def contains(outer: Node, inner: Node) -> bool:
    """True if a node lies in another one, or is that node."""
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def strip(node: Node) -> Node:
    """The node without the parentheses around it."""
    while node.type in ("parenthesized_expression", "condition_clause") and node.named_child_count == 1:
        inner = node.named_child(0)
        assert inner is not None
        node = inner
    return node


def _definitions_under(root: Node) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in find(root, "function_definition"):
        if node.child_by_field_name("body") is not None:
            found.setdefault(_function_name(node), []).append(node)
    return found


def _function_name(node: Node) -> str:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(
            (c for c in declarator.named_children if "declarator" in c.type), None
        )
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    return "" if name is None else last_name(plain(name))


@lru_cache(maxsize=64)
def _tree_of(text: str, backend: Backend = Backend.CUDA) -> Node:
    masked = _QUALIFIERS.sub(lambda m: b" " * len(m.group()), text.encode())
    if backend.language.is_opencl_c:
        masked = _OPENCL_WORDS.sub(lambda m: b" " * len(m.group()), masked)
    return Parser(_LANGUAGE).parse(masked).root_node


@lru_cache(maxsize=64)
def _functions_of(text: str) -> dict[str, list[Node]]:
    return _definitions_under(_tree_of(text))


def plain(node: Node) -> str:
    """Text of a node of any tree, without address-space words."""
    return "" if node.text is None else node.text.decode()


def template_parameter_name(parameter: Node) -> str:
    """The name that a template parameter declares; of a function pointer the one before its parameters."""
    if not parameter.type.endswith("parameter_declaration"):
        return plain(parameter)
    named = parameter.child_by_field_name("name")
    if named is not None:
        return plain(named)
    inner = parameter.child_by_field_name("declarator")
    found = find(parameter if inner is None else inner, "identifier", "type_identifier")
    return "" if not found else plain(found[-1 if inner is None else 0])


class Source:
    """Source text, its tree, and the definition of the kernel named by `entry`.

    Raises:
        LookupError: the entry is not defined exactly once; the message says what was found.
    """

    def __init__(
        self,
        text: str,
        backend: Backend,
        entry: str,
        library: tuple[str, ...] = (),
        macros: Mapping[str, str] | None = None,
    ) -> None:
        self.text = text
        self.backend = backend
        self.entry = entry
        self.library = library
        """Texts of headers that the source includes: read to analyse callees, never edited."""
        self.macros = macros or {}
        """Words that only macros brought into the kernel, with the macro."""
        self.data = text.encode()
        self.root = _tree_of(text, backend)
        self.kernel = self._definition(entry_name(entry))
        body = self.kernel.child_by_field_name("body")
        assert body is not None
        self.body = body

    def of(self, node: Node) -> str:
        """The original text of a node."""
        return self.data[node.start_byte : node.end_byte].decode()

    def between(self, start: int, end: int) -> str:
        """Original text of a byte range."""
        return self.data[start:end].decode()

    def library_definitions(self, name: str) -> list[Node]:
        """Definitions of a name in the included headers. Their nodes do not belong to this text."""
        return [f for text in self.library for f in _functions_of(text).get(name, ())]

    def library_roots(self) -> list[Node]:
        """The trees of the included headers. Their nodes do not belong to this text."""
        return [_tree_of(text) for text in self.library]

    @cached_property
    def functions(self) -> dict[str, list[Node]]:
        """Every function definition by its last name."""
        return _definitions_under(self.root)

    def _definition(self, name: str) -> Node:
        found = self.functions.get(name, [])
        if not self.backend.language.is_opencl_c:
            found = [f for f in found if "__global__" in self.of(f).split("{", 1)[0]]
        if len(found) != 1:
            raise LookupError(f"{len(found)} definitions of kernel {name!r} in the source, not one")
        return found[0]

    @cached_property
    def reachable(self) -> tuple[Node, ...]:
        """The kernel and every function of this source that it may call, found by name."""
        seen: list[tuple[Node, Mapping[str, str]]] = [(self.kernel, {})]
        for function, bound in seen:
            for call in find(function, "call_expression"):
                name = self.callee(call)
                for callee in self.definitions(bound.get(name, name)):
                    inner = self.bound_names(callee, call, bound)
                    if all((callee.id, inner) != (s.id, b) for s, b in seen):
                        seen.append((callee, inner))
        return tuple({s.id: s for s, _ in seen}.values())

    def definitions(self, name: str) -> list[Node]:
        """Definitions that a called name may refer to; template arguments are followed."""
        return self.functions.get(name) or self.functions.get(self.template_argument(name), [])

    def bound_names(self, callee: Node, call: Node, around: Mapping[str, str]) -> Mapping[str, str]:
        """Last names that a call gives explicitly to the template parameters of the function that it calls.

        Args:
            around: names that are bound where the call stands.
        """
        parent, function = callee.parent, call.child_by_field_name("function")
        if parent is None or function is None or parent.type != "template_declaration":
            return {}
        listed, text = parent.child_by_field_name("parameters"), plain(function)
        if listed is None or not text.endswith(">"):
            return {}
        given = (last_name(a.strip(" &")) for a in split_arguments(text[text.index("<") + 1 : -1]))
        values = (around.get(a) or self.template_argument(a) or a for a in given)
        names = (template_parameter_name(c) for c in listed.named_children if c.type != "comment")
        return dict(zip(names, values, strict=False))

    def template_argument(self, name: str) -> str:
        """The argument that the entry's name expression binds to the kernel's template parameter `name`."""
        parent = self.kernel.parent
        if parent is None or parent.type != "template_declaration" or "<" not in self.entry:
            return ""
        listed = parent.child_by_field_name("parameters")
        named = () if listed is None else listed.named_children
        names = [template_parameter_name(c) for c in named if c.type != "comment"]
        values = split_arguments(self.entry[self.entry.index("<") + 1 : self.entry.rindex(">")])
        bound = dict(zip(names, values, strict=False))
        return bound.get(name, "").split("::")[-1].split("<")[0].strip(" &")

    @staticmethod
    def callee(call: Node) -> str:
        """Last name of the called function: `cast_load` for `x.cast_load(p)`."""
        function = call.child_by_field_name("function")
        if function is None:
            return ""
        if function.type == "field_expression":
            function = function.child_by_field_name("field") or function
        return last_name(plain(function))

    @staticmethod
    def arguments(call: Node) -> list[Node]:
        """Argument expressions of a call."""
        listed = call.child_by_field_name("arguments")
        return [] if listed is None else [c for c in listed.named_children if c.type != "comment"]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Everything declared in the reachable functions and at file scope."""
        found: list[Variable] = []
        for node in find(self.root, "declaration", "parameter_declaration", "optional_parameter_declaration"):
            found += self._declared(node)
        return tuple(found)

    def lookup(self, name: str, at: Node) -> Variable | None:
        """The innermost declaration of `name` visible at `at`."""
        best: Variable | None = None
        for v in self._by_name.get(name, ()):
            inside = v.scope is None or contains(v.scope, at)
            if inside and (best is None or _depth(v) >= _depth(best)):
                best = v
        return best

    @cached_property
    def _by_name(self) -> dict[str, list[Variable]]:
        found: dict[str, list[Variable]] = {}
        for v in self.variables:
            found.setdefault(v.name, []).append(v)
        return found

    def _declared(self, node: Node) -> Iterator[Variable]:
        if not _declares_variable(node):
            return
        scope = next((a for a in ancestors(node) if a.type in _SCOPES), None)
        type_node = node.child_by_field_name("type")
        for declarator in node.children_by_field_name("declarator"):
            init = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            *around, name = _nested(declarator)
            if name.type != "identifier" or type_node is None:
                continue
            kinds = {n.type for n in around}
            array = "array_declarator" in kinds
            words = self._specifiers(node)
            written = self._type_text(node, type_node)
            reference = "reference_declarator" in kinds and not ({"const", "constexpr"} & words)
            yield Variable(
                name=self.of(name),
                type_text=written,
                kind=self._typedefs.get(written, written),
                declaration=node,
                declarator=declarator,
                init=init,
                scope=scope,
                is_pointer="pointer_declarator" in kinds or reference,
                is_array=array,
                is_shared="__shared__" in words
                or (bool({"__local", "local"} & words) and (array or scope == self.kernel)),
                is_const="const" in words or "constexpr" in words,
                is_parameter=node.type != "declaration",
                is_reference=reference,
            )

    @cached_property
    def _typedefs(self) -> dict[str, str]:
        """Types of numbers by their other names (`typedef float real;`), as far as all definitions agree."""
        found: dict[str, set[str]] = {}
        texts = ((self.text, self.root), *((t, _tree_of(t)) for t in self.library))
        for root in (r for text, r in texts if "typedef" in text or "using" in text):
            for name, written in _other_names(root):
                found.setdefault(name, set()).add(written)
        single = {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}
        macros = set[str]().union(*(defined_names(text) for text, _ in texts))
        return _numbers_among(single, macros)

    def _type_text(self, node: Node, type_node: Node) -> str:
        """The type as written, without macros before it that are qualifiers."""
        rest = [self.of(c) for c in node.children if c.type == "ERROR" and c.start_byte >= type_node.end_byte]
        words = [self.of(type_node), *rest]
        return " ".join(words[1:] if rest and type_node.type == "type_identifier" else words)

    def _specifiers(self, node: Node) -> set[str]:
        """Words before the declarator; blanked-out ones stand before the node itself."""
        previous = node.prev_sibling
        start = previous.end_byte if previous is not None else node.start_byte
        first = node.child_by_field_name("declarator")
        end = first.start_byte if first is not None else node.end_byte
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", self.between(start, end), flags=re.S)
        return set(re.findall(r"\w+", text))


def _declares_variable(node: Node) -> bool:
    """True for a declaration, and for a parameter of a function."""
    if node.type == "declaration":
        return True
    function = None if node.parent is None else node.parent.parent
    return function is not None and function.type == "function_declarator"


def _numbers_among(single: Mapping[str, str], macros: set[str]) -> dict[str, str]:
    """Types of numbers by the names that lead to them; a macro may stand for any type."""
    resolved: dict[str, str] = {}
    for name in single.keys() - macros:
        kind = name
        for _ in range(len(single)):
            kind = single.get(kind, kind) if kind not in macros else kind
        if element_type(kind, {})[0] is not None and kind not in macros:
            resolved[name] = kind
    return resolved


def _other_names(root: Node) -> Iterator[tuple[str, str]]:
    """Names for types, with what they are; empty for a pointer or array, and in a class or template."""
    for node in find(root, "type_definition", "alias_declaration"):
        written = node.child_by_field_name("type")
        alike = all(a.type not in _LIMITED for a in ancestors(node))
        if node.type == "alias_declaration":
            name = node.child_by_field_name("name")
            pointed = find(
                node,
                "abstract_pointer_declarator",
                "abstract_array_declarator",
                "abstract_function_declarator",
            )
            names = [] if name is None or pointed else [name]
        else:
            names = node.children_by_field_name("declarator")
        for name in names:
            plain_name = plain(name) if name.type == "type_identifier" else ""
            known = alike and bool(plain_name) and written is not None
            for inner in find(name, "type_identifier"):
                yield plain(inner), " ".join(plain(written).split()) if known and written else ""


def _nested(declarator: Node) -> list[Node]:
    """A declarator and those inside of it, in this order; the last is the name, if there is one."""
    found, inner = [], declarator
    while True:
        found.append(inner)
        if inner.type == "identifier":
            return found
        parts = (c for c in inner.named_children if "declarator" in c.type or c.type == "identifier")
        following = inner.child_by_field_name("declarator") or next(parts, None)
        if following is None:
            return found
        inner = following


def _depth(v: Variable) -> int:
    return 0 if v.scope is None else sum(1 for _ in ancestors(v.scope)) + 1
