"""Arguments and template parameters of a kernel, from the tokens of their lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warpsmith.domain.dtype import Dtype
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.lexing.brackets import Nesting, closing, joined, split_commas
from warpsmith.source.lexing.tokens import Token

_SPACES = {
    word: word.removeprefix("__")
    for word in "__global global __local local __constant constant __private private".split()  # noqa: SIM905
}
_DROPPED = re.compile(
    r"^(?:\w*(?:grid_constant|GRID_CONSTANT)\w*|__read_only|__write_only|__read_write|read_only|write_only|read_write|register"
    r"|\w*restrict_*|\w*RESTRICT_*|__shared__|__const__)$"
)
_ACCESS = re.compile(r"^(?:__)?(read|write)_only$|^(?:__)?(read_write)$")
_IMAGE = re.compile(r"^image[123]d_(?:\w+_)?t$")
_ATTRIBUTES = ("__attribute__", "__attribute", "alignas", "__align__", "__declspec")
_QUALIFIERS = ("const", "volatile")
_ELABORATED = ("typename", "struct", "class", "enum", "union")
_TYPE_WORDS = frozenset(
    "void bool char short int long float double half signed unsigned auto wchar_t const volatile".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel definition."""

    name: str
    """Name; empty if the definition leaves it out."""
    type_text: str
    """The type as written, in one spacing, without attributes, `__restrict__` and address spaces."""
    base: str
    """The type without qualifiers and pointers: `float` for `const float*`."""
    pointers: int
    """Levels of indirection: 2 for `float**`. An array counts as a pointer."""
    is_const: bool
    """True if the pointee is const; False for values."""
    is_reference: bool
    address_space: str
    """`global`, `local`, `constant` or `private` if the source says so (OpenCL); else empty."""
    dtype: Dtype | None
    """Element type, if the base is a number or a vector of numbers."""
    lanes: int = 1
    """Numbers in one element: 4 for `float4`."""
    access: str = ""
    """`read`, `write` or `read_write` if the source says so of an image; else empty."""

    @property
    def is_pointer(self) -> bool:
        """True for pointers and arrays."""
        return self.pointers > 0

    @property
    def is_image(self) -> bool:
        """True for every kind of OpenCL image."""
        return _IMAGE.match(self.base) is not None

    @property
    def image_axes(self) -> int:
        """2 for an `image2d_t`, 3 for an `image3d_t`; 0 for types that a job cannot pass as an image."""
        return {"image2d_t": 2, "image3d_t": 3}.get(self.base, 0)


@dataclass(frozen=True)
class TemplateParameter:
    """A parameter of a template."""

    kind: str
    """`type`, `value` or `template`."""
    name: str
    """Name; empty if the declaration leaves it out."""
    type_text: str
    """Type of a value parameter (`int`); `typename`, `class` or a concept otherwise."""
    default: str
    is_pack: bool = False


def read_arguments(
    tokens: Sequence[Token], macros: Mapping[str, str], aliases: Mapping[str, str]
) -> tuple[KernelArgument, ...]:
    """The arguments between a kernel's parentheses.

    Args:
        macros: macros of the file; those that are empty or mean `restrict` are left out.
        aliases: `using` and `typedef` names of the file.
    """
    parts = [(_without_attributes(p, macros), _access(p)) for p in split_commas(tokens)]
    return tuple(
        _argument(p, aliases, access) for p, access in parts if p and [t.text for t in p] != ["void"]
    )


def read_template(tokens: Sequence[Token]) -> tuple[TemplateParameter, ...]:
    """The parameters between a template's angle brackets."""
    return tuple(_template_parameter(p) for p in split_commas(tokens))


def split_template(header: Sequence[Token]) -> tuple[tuple[TemplateParameter, ...], Sequence[Token]]:
    """The template parameters of a declaration, and the declaration after them."""
    found: tuple[TemplateParameter, ...] = ()
    at = rest = 0
    while at + 1 < len(header):
        if header[at].text == "template" and header[at + 1].text == "<":
            end = closing(header, at + 1)
            found += read_template(header[at + 2 : end])
            at = rest = end + 1
        else:
            at += 1
    return found, header[rest:]


def _without_attributes(tokens: Sequence[Token], macros: Mapping[str, str]) -> list[Token]:
    kept: list[Token] = []
    skip_list = False
    depth = 0
    for token in tokens:
        text = token.text
        if depth or text == "[[" or (skip_list and text == "("):
            depth += (text in ("(", "[[")) - (text in (")", "]]"))
            skip_list = False
        elif text in _ATTRIBUTES:
            skip_list = True
        elif not _DROPPED.match(text) and not _stands_for_nothing(text, macros):
            kept.append(token)
    return kept


def _access(tokens: Sequence[Token]) -> str:
    found = (_ACCESS.match(t.text) for t in tokens)
    return next((m.group(1) or m.group(2) for m in found if m), "")


def _stands_for_nothing(text: str, macros: Mapping[str, str]) -> bool:
    value = macros.get(text)
    return value is not None and all(_DROPPED.match(word) for word in value.split())


def _argument(tokens: list[Token], aliases: Mapping[str, str], access: str) -> KernelArgument:
    spaces = [_SPACES[t.text] for t in tokens if t.text in _SPACES]
    tokens = _before_default([t for t in tokens if t.text not in _SPACES])[0]
    name_at, arrays = _declared_name(tokens)
    kind = [t for n, t in enumerate(tokens) if n != name_at]
    signs = [t.text for t in _top_level(kind)]
    inner = sum(t.text == "*" for t in kind) if "*" not in signs else 0
    pointers = arrays + signs.count("*") + inner
    base = _base(kind)
    dtype, lanes = element_type(base, aliases)
    return KernelArgument(
        name="" if name_at is None else tokens[name_at].text,
        type_text=joined(kind),
        base=base,
        pointers=pointers,
        is_const=pointers > 0 and "const" in _pointee(signs, arrays),
        is_reference="&" in signs or "&&" in signs or _in_parentheses(kind, "&"),
        address_space=spaces[0] if spaces else "",
        dtype=dtype,
        lanes=lanes,
        access=access,
    )


def _base(kind: Sequence[Token]) -> str:
    """A parameter's type without qualifiers and pointers."""
    words = [t for t in _top_level(kind, inside=True) if t.text not in (*_QUALIFIERS, *_ELABORATED)]
    return joined(words[: _first(words, "*", "&", "&&", "...")])


def _pointee(signs: list[str], arrays: int) -> list[str]:
    """Words of what a parameter's last pointer, or its array, points to."""
    stars = [n for n, text in enumerate(signs) if text == "*"]
    if stars and not arrays:
        signs, stars = signs[: stars[-1]], stars[:-1]
    return signs[stars[-1] + 1 :] if stars else signs


def _top_level(tokens: Sequence[Token], inside: bool = False) -> list[Token]:
    """Tokens outside brackets; with `inside`, those in angle brackets as well."""
    nesting, found = Nesting(), []
    for token in tokens:
        top = nesting.step(token)
        plain = top and token.text not in ("(", ")", "[", "]", "<", ">")
        if plain or (inside and (token.text in ("<", ">") or "<" in nesting.open)):
            found.append(token)
    return found


def _first(tokens: Sequence[Token], *signs: str) -> int:
    """Index of the first of these signs outside brackets; the number of tokens if there is none."""
    nesting = Nesting()
    return next((n for n, t in enumerate(tokens) if nesting.step(t) and t.text in signs), len(tokens))


def _in_parentheses(tokens: Sequence[Token], sign: str) -> bool:
    return any(a.text == "(" and b.text == sign for a, b in pairwise(tokens))


def _before_default(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    at = _first(tokens, "=")
    return list(tokens[:at]), list(tokens[at + 1 :])


def _declared_name(tokens: list[Token]) -> tuple[int | None, int]:
    """Index of the name that a parameter declares, and its number of array dimensions."""
    for n in range(len(tokens) - 2):
        if tokens[n].text == "(" and tokens[n + 1].text in ("*", "&"):
            named = next((m for m in range(n + 1, len(tokens)) if tokens[m].kind == "name"), None)
            return named, 0
    end, arrays = _without_extents(tokens)
    if end < 1 or tokens[end - 1].kind != "name" or tokens[end - 1].text in _TYPE_WORDS:
        return None, arrays
    before = [t.text for t in tokens[: end - 1] if t.text not in (*_QUALIFIERS, *_ELABORATED)]
    if not before or before[-1] == "::":
        return None, arrays
    return end - 1, arrays


def _without_extents(tokens: Sequence[Token]) -> tuple[int, int]:
    """Index behind a declarator without its array extents, and their number."""
    end, arrays = len(tokens), 0
    while end > 0 and tokens[end - 1].text == "]":
        end = max((n for n in range(end) if tokens[n].text == "["), default=0)
        arrays += 1
    return end, arrays


def _template_parameter(tokens: Sequence[Token]) -> TemplateParameter:
    declared, default = _before_default(tokens)
    words = [t.text for t in declared]
    is_pack = "..." in words
    declared = [t for t in declared if t.text != "..."]
    if words[:1] == ["template"]:
        last = declared[-1]
        named = last.kind == "name" and last.text not in ("class", "typename")
        return TemplateParameter("template", last.text if named else "", "template", joined(default), is_pack)
    plain_type = words[:1] in (["typename"], ["class"]) and "::" not in words and len(declared) <= 2
    name_at, _ = _declared_name(declared)
    if plain_type:
        name_at = 1 if len(declared) == 2 else None
    name = "" if name_at is None else declared[name_at].text
    kind = joined([t for n, t in enumerate(declared) if n != name_at])
    return TemplateParameter("type" if plain_type else "value", name, kind, joined(default), is_pack)
