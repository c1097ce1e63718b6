"""Structs that sources declare, with their members as a job lists them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from warpsmith.source.declarations.argument_lists import (
    KernelArgument,
    TemplateParameter,
    read_arguments,
    split_template,
)
from warpsmith.source.declarations.named_constants import find_constants, integer_value
from warpsmith.source.declarations.type_names import type_aliases
from warpsmith.source.lexing.brackets import joined, split_commas
from warpsmith.source.lexing.scopes import Scope, namespaces, scopes
from warpsmith.source.lexing.tokens import Token, Tokens, tokenise

_NO_MEMBER = frozenset(
    ("using", "typedef", "static", "friend", "template", "enum", "struct", "class", "union", "operator")
)
_ACCESS = frozenset(("public", "private", "protected"))


@dataclass(frozen=True)
class Member:
    """A data member of a struct."""

    declared: KernelArgument
    """Name and type, read like an argument of a kernel."""
    extents: tuple[str, ...] = ()
    """Extents of a fixed array as written, outermost first."""


@dataclass(frozen=True)
class Struct:
    """A struct of a source, with its members as far as they are read."""

    name: str
    """Name with its namespaces."""
    template: tuple[TemplateParameter, ...]
    bases: tuple[str, ...]
    members: tuple[Member, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Names for types that its body declares."""
    unread: str = ""
    """A declaration among the members that is not understood; empty if there is none."""
    has_private: bool = False
    align: str = ""
    """Alignment as declared; empty: that of its members."""


@dataclass(frozen=True)
class StructIndex:
    """Structs of a source and its headers by their own names."""

    structs: Mapping[str, Struct]
    aliases: Mapping[str, str]
    constants: Mapping[str, int]

    def find(self, type_text: str) -> tuple[Struct, Mapping[str, str]] | None:
        """The struct that a type names, and the types or values of its template parameters."""
        for _ in range(8):
            if type_text not in self.aliases:
                break
            type_text = self.aliases[type_text]
        named = re.fullmatch(r"(?:::)?((?:\w+::)*)(\w+)\s*(?:<(.*)>)?", type_text.strip(), re.S)
        found = self.structs.get(named.group(2)) if named else None
        if named is None or found is None:
            return None
        given = [joined(part) for part in split_commas(tokenise(named.group(3) or "").items)]
        parameters = {
            p.name: given[n] if n < len(given) else p.default for n, p in enumerate(found.template) if p.name
        }
        return found, parameters | {n: spelt(kind, parameters) for n, kind in found.aliases.items()}

    def members_of(self, arguments: Iterable[KernelArgument]) -> Iterator[KernelArgument]:
        """The members of structs that a kernel takes by value, with types in the words of its template."""
        for argument in arguments:
            found = None if argument.is_pointer or argument.dtype else self.find(argument.base)
            if found is not None:
                struct, names = found
                declared = (member.declared for member in struct.members)
                yield from (replace(d, base=spelt(d.base, names)) for d in declared)


def index_structs(texts: Iterable[str], defines: Mapping[str, str] | None = None) -> StructIndex:
    """The structs of these texts; of two with one name the later one counts.

    Args:
        defines: macros given to the compiler, which may stand for types and numbers.
    """
    given = defines or {}
    structs: dict[str, Struct] = {}
    aliases = {name: value for name, value in given.items() if re.fullmatch(r"[A-Za-z_][\w ]*", value)}
    constants = {name: int(value) for name, value in given.items() if value.isdecimal()}
    for text in texts:
        tokens = tokenise(text, given)
        own = dict(type_aliases(tokens.items))
        aliases |= own
        constants |= {c.name: c.value for c in find_constants(text)}
        structs |= {s.name.rpartition("::")[2]: s for s in _structs(tokens, aliases)}
    return StructIndex(structs, aliases, constants)


def _structs(tokens: Tokens, aliases: Mapping[str, str]) -> Iterator[Struct]:
    for at, scope in scopes(tokens):
        if tokens.items[at].text in ("struct", "class") and tokens.items[at - 1].text != "enum":
            found = _definition(tokens, at, scope, aliases)
            if found is not None:
                yield found


def _definition(tokens: Tokens, at: int, scope: Scope, aliases: Mapping[str, str]) -> Struct | None:
    items = tokens.items
    opening = _opening(tokens, at)
    if items[opening].text != "{":
        return None
    header, align, packed = _without_attributes([items[n] for n in tokens.forward(at + 1) if n < opening])
    if any(t.text == "(" for t in header):
        return None  # a function that returns one
    before = takewhile(lambda n: items[n].text not in (";", "{", "}"), tokens.backward(at))
    words = [items[n] for n in before][::-1]
    colon = next((n for n, t in enumerate(header) if t.text == ":"), len(header))
    body, end = _braced(tokens, opening)
    name = _name_of(words, header[:colon], items[end + 1 : end + 2])
    if not name:
        return None
    template = split_template(words)[0]
    own = {n: kind for n, kind in aliases.items() if n not in {p.name for p in template}}
    members, unread = _members(body, tokens.macros, own)
    unread = unread or ("the attribute packed" if packed else "")
    return Struct(
        name="::".join([*namespaces(scope), name]),
        template=template,
        bases=_bases(header[colon + 1 :]),
        members=members,
        aliases=dict(type_aliases(tuple(body))),
        unread=unread,
        has_private=_has_private(items[at].text, body),
        align=align,
    )


def _name_of(before: Sequence[Token], header: Sequence[Token], after: Sequence[Token]) -> str:
    """The name in a struct's header, or behind the body of a `typedef`; empty without one."""
    if before and before[0].text == "typedef":
        names = [t.text for t in after if t.kind == "name"]
    else:
        names = [t.text for t in header if t.kind == "name" and t.text != "final"]
    return names[-1] if names else ""


def _bases(listed: Sequence[Token]) -> tuple[str, ...]:
    kept = ([t for t in base if t.text not in (*_ACCESS, "virtual")] for base in split_commas(listed))
    return tuple(map(joined, kept))


def _has_private(keyword: str, body: Sequence[Token]) -> bool:
    if any(t.text in ("private", "protected") for t in body):
        return True
    return keyword == "class" and bool(body) and body[0].text != "public"


def _opening(tokens: Tokens, at: int) -> int:
    """Index of the brace that opens a body, or of what shows that there is none."""
    signs: tuple[str, ...] = ("{", ";", ",", ">", "=", "*", "&")
    for n in tokens.forward(at + 1):
        if tokens.items[n].text in signs:
            return n
        if tokens.items[n].text == ":":
            signs = ("{", ";")  # bases follow, which may be templates
    return at


def _without_attributes(header: Sequence[Token]) -> tuple[list[Token], str, bool]:
    """A struct's header without attributes, its alignment, and whether it is packed."""
    kept: list[Token] = []
    align, packed, depth, attribute = "", False, 0, False
    for n, token in enumerate(header):
        if token.text in ("__align__", "alignas", "aligned") and n + 1 < len(header):
            align = joined(list(takewhile(lambda t: t.text != ")", header[n + 2 :])))
        packed |= token.text in ("packed", "__packed__")
        attribute |= token.text in ("__align__", "alignas", "__attribute__", "[[")
        depth += (token.text in ("(", "[[")) - (token.text in (")", "]]"))
        if not attribute:
            kept.append(token)
        elif depth == 0 and token.text in (")", "]]"):
            attribute = False
    return kept, align, packed


def _braced(tokens: Tokens, opening: int) -> tuple[list[Token], int]:
    """The tokens within braces, and the index of the closing one."""
    depth = 0
    inside: list[Token] = []
    at = opening
    for at in tokens.forward(opening):
        token = tokens.items[at]
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            break
        if at != opening:
            inside.append(token)
    return inside, at


def _members(
    body: Sequence[Token], macros: Mapping[str, str], aliases: Mapping[str, str]
) -> tuple[tuple[Member, ...], str]:
    """Data members in order, and a declaration that is not understood."""
    found: list[Member] = []
    for declaration in _declarations(body):
        texts = [t.text for t in declaration]
        if texts[0] in ("union", "struct", "class") and "{" in texts and texts[-1] == "}":
            return tuple(found), f"{texts[0]} without a name"
        if _NO_MEMBER & set(texts[:2]) and not (texts[0] in ("struct", "enum") and "{" not in texts[1:]):
            continue
        if "(" in texts[: texts.index("=") if "=" in texts else None]:
            continue  # a function
        if ":" in texts:
            return tuple(found), f"the bit field {joined(declaration)}"
        read = list(_declarators(declaration, macros, aliases))
        if not read or any(not m.declared.name for m in read):
            return tuple(found), joined(declaration)
        found += read
    return tuple(found), ""


def _declarations(body: Sequence[Token]) -> Iterator[list[Token]]:
    """Declarations in a struct's body, without bodies of functions."""
    current: list[Token] = []
    depth = 0
    for token in body:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text == ":" and len(current) == 1 and current[0].text in _ACCESS:
            current = []
            continue
        if depth == 0 and token.text == ";":
            if current:
                yield current
            current = []
            continue
        current.append(token)
        is_function = any(t.text == "(" for t in current)
        if depth == 0 and token.text == "}" and is_function:
            current = []


def _declarators(
    declaration: Sequence[Token], macros: Mapping[str, str], aliases: Mapping[str, str]
) -> Iterator[Member]:
    first: list[Token] = []
    for part in split_commas(declaration):
        plain = list(takewhile(lambda t: t.text not in ("=", "{"), part))
        extents: list[str] = []
        while plain and plain[-1].text == "]":
            begin = max(n for n, t in enumerate(plain) if t.text == "[")
            extents.insert(0, joined(plain[begin + 1 : -1]))
            plain = plain[:begin]
        whole = [*first, *plain]
        for argument in read_arguments(whole, macros, aliases):
            yield Member(argument, tuple(extents))
        if not first:
            # What later declarators share with the first one: its type without its pointers and name.
            first = list(takewhile(lambda t: t.text not in ("*", "&"), plain[:-1]))


def spelt(type_text: str, names: Mapping[str, str]) -> str:
    """A type with the names of template parameters and aliases replaced by what they stand for."""
    return re.sub(r"(?<![\w:])\w+", lambda m: names.get(m.group(), m.group()), type_text)


def extent_of(text: str, parameters: Mapping[str, str], constants: Mapping[str, int]) -> int | None:
    """The value of an array's extent; None if it is not known."""
    known = dict(constants) | {n: int(v) for n, v in parameters.items() if v.isdecimal()}
    return integer_value(text, known)
