"""The text of a small kernel with its syntax tree, and edits of it at drawn places."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from random import Random

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_cuda.language()))
_BLANKED = re.compile(r"\b(?:__kernel|__global|__local|restrict|__restrict__)\b")
COORDINATE = re.compile(
    r"(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]|get_(?:global|local|group)_(?:id|size)\(\d\)"
)
_NAME = r"\((?!(?:int|unsigned|size_t|float)\))([A-Za-z_]\w*)\)"
_LONE = re.compile(rf"(?:(?<=[-+*/<>&|?:=!(] )|(?<=[!(])){_NAME}|(?<=\[){_NAME}(?= [-+*&])")
"""The grammar reads `(n) * k` as a cast."""

Edit = tuple[int, int, str]
"""Replace the characters [start, end) by a text."""
Site = Sequence[Edit]
"""What belongs together: all of it is done, or none."""

GROUPED = ("parenthesized_expression", "condition_clause")


def between(node: Node, child: str) -> Node:
    """The child of a field, which the grammar always has here."""
    found = node.child_by_field_name(child)
    assert found is not None, (node.type, child)
    return found


def bare(node: Node) -> Node:
    """The expression without parentheses around it."""
    while node.type in GROUPED:
        inner = node.named_child(0)
        assert inner is not None
        node = inner
    return node


def within(node: Node, *kinds: str) -> Iterator[Node]:
    """Nodes of these types from here downwards, in the order of the text."""
    if node.type in kinds:
        yield node
    for child in node.children:
        yield from within(child, *kinds)


def around(node: Node) -> Iterator[Node]:
    """Parents, nearest first."""
    while node.parent is not None:
        node = node.parent
        yield node


def operator(node: Node) -> str:
    """Of a binary expression, an assignment or an update."""
    found = node.child_by_field_name("operator")
    return "" if found is None or found.text is None else found.text.decode()


class Text:
    """A source of one kernel, in ASCII, for CUDA or OpenCL."""

    def __init__(self, text: str) -> None:
        self.text = text
        blanked = _BLANKED.sub(lambda m: " " * len(m.group()), text)
        self.root = _PARSER.parse(blanked.encode()).root_node
        assert not self.root.has_error, text
        self.kernel = next(within(self.root, "function_definition"))
        self.body = between(self.kernel, "body")
        self.is_opencl = "__kernel" in text

    def of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def inside(self, *kinds: str) -> list[Node]:
        """Nodes of the kernel's body."""
        return list(within(self.body, *kinds))

    @cached_property
    def types(self) -> dict[str, str]:
        """Types of names of the kernel: `int`, `float`, `float *`; one name has one type here."""
        found = {}
        for node in within(self.kernel, "declaration", "parameter_declaration"):
            kind = self.of(between(node, "type"))
            for declarator in node.children_by_field_name("declarator"):
                (name, *_) = within(declarator, "identifier")
                inner = (
                    between(declarator, "declarator") if declarator.type == "init_declarator" else declarator
                )
                pointer = inner.type in ("pointer_declarator", "array_declarator")
                found[self.of(name)] = f"{kind} *" if pointer else kind
        return found

    @cached_property
    def macros(self) -> dict[str, str]:
        """Meanings of macros by name."""
        return dict(re.findall(r"(?m)^#define (\w+)(?:\([^)]*\))? (.*)$", self.text))

    def fresh(self, name: str) -> str:
        """A name that the text does not have."""
        n, taken = 1, name
        while re.search(rf"\b{taken}\b", self.text):
            n, taken = n + 1, f"{name}{n + 1}"
        return taken

    def is_whole(self, node: Node) -> bool:
        """Whether an expression is made of whole numbers."""
        if node.type == "number_literal":
            return self.of(node).isdigit()
        if COORDINATE.fullmatch(self.of(node)):
            return True
        if node.type == "identifier":
            return self.types.get(self.of(node), "int") in ("int", "unsigned", "size_t")
        if node.type == "subscript_expression":
            return self.types.get(self.of(between(node, "argument"))) == "int *"
        if node.type == "call_expression":
            return self.of(between(node, "function")) in self.macros
        if node.type == "cast_expression":
            return self.of(between(node, "type")) != "float"
        if node.type in ("binary_expression", *GROUPED):
            return all(self.is_whole(c) for c in node.named_children)
        return False

    def names(self, node: Node) -> set[str]:
        """Names of variables that an expression reads, through macros too."""
        found = {self.of(n) for n in within(node, "identifier")}
        meanings = [self.macros[name] for name in found & self.macros.keys()]
        while meanings:
            words = set(re.findall(r"[A-Za-z_]\w*", meanings.pop())) - found
            meanings += [self.macros[w] for w in words & self.macros.keys()]
            found |= words
        return found & self.types.keys()

    @cached_property
    def changes(self) -> list[tuple[str, int]]:
        """Names that assignments and updates change, with the places of these."""
        found = []
        for node in self.inside("assignment_expression", "update_expression"):
            target = between(node, "left" if node.type == "assignment_expression" else "argument")
            found.append((self.of(target), node.start_byte))
        return found

    def is_constant(self, node: Node) -> bool:
        """Whether an expression reads no array, and nothing that it reads is ever changed."""
        changed = {name for name, _ in self.changes}
        return not self.names(node) & changed and not self.loads(node)

    def loads(self, node: Node) -> bool:
        """Whether an expression reads an array."""
        return any(True for _ in within(node, "subscript_expression", "pointer_expression"))

    def declaration_of(self, name: str) -> Node | None:
        """The declaration of a local of the kernel; the last if there are several."""
        found = None
        for node in self.inside("declaration"):
            for declarator in node.children_by_field_name("declarator"):
                if self.of(next(within(declarator, "identifier"))) == name:
                    found = node
        return found

    def earliest(self, node: Node) -> int | None:
        """Where what never changes can be computed first; None: a loop declares what it reads."""
        places = [self.body.start_byte + 1]
        for name in self.names(node):
            declared = self.declaration_of(name)
            if declared is None:
                continue
            if declared.parent is None or declared.parent.type != "compound_statement":
                return None
            places.append(declared.end_byte)
        return max(places)

    def is_declared_once(self, name: str) -> bool:
        """Whether a name has one declaration."""
        return len(re.findall(rf"\b(?:int|float|unsigned|size_t)\b[ *]*{name}\b", self.text)) == 1


def statement_of(node: Node) -> Node | None:
    """The statement that computes an expression, if it does so always and once."""
    for one in around(node):
        if one.type in ("expression_statement", "declaration"):
            header = one.parent is not None and one.parent.type == "for_statement"
            return None if header and one.type == "declaration" else one
        if one.type == "conditional_expression" or operator(one) in ("&&", "||"):
            return None
        if one.type.endswith("statement") or one.type == "condition_clause":
            return None
    return None


def before(statement: Node, added: str) -> list[Edit]:
    """Edits that put a declaration before a statement; braces where it stands alone."""
    assert statement.parent is not None
    start, end = statement.start_byte, statement.end_byte
    if statement.parent.type == "compound_statement":
        return [(start, start, f"{added}\n  ")]
    assert statement.type != "declaration"
    return [(start, start, f"{{ {added} "), (end, end, " }")]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with edits that do not overlap; a name that they left alone in parentheses loses these."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    lines = text.splitlines(keepends=True)
    return "".join(
        line if line.startswith("#") else _LONE.sub(lambda m: m[1] or m[2], line) for line in lines
    )


def at_some(text: str, sites: Sequence[Site], rng: Random, most: int = 99) -> str:
    """The text with one or more of the sites changed, none of which overlap."""
    if not sites:
        return text
    wanted = rng.randint(1, min(most, len(sites)))
    chosen: list[Edit] = []
    for site in rng.sample(list(sites), len(sites)):
        apart = all(e <= s2 or e2 <= s for s, e, _ in site for s2, e2, _ in chosen)
        same_place = {s for s, e, _ in site if s == e} & {s for s, e, _ in chosen if s == e}
        if wanted and apart and not same_place:
            chosen += site
            wanted -= 1
    return edited(text, chosen)


def factor(text: str, node: Node) -> str:
    """An expression's text as an operand of anything."""
    simple = ("identifier", "number_literal", "field_expression", "call_expression", "subscript_expression")
    return text if node.type in (*simple, "parenthesized_expression") else f"({text})"
