"""Macros that stand for single words: words that introduce kernels, and names."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from warpsmith.source.lexing.tokens import Tokens, blank, directives

_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*\)\)|__launch_bounds__\s*\([^()]*\)")
_FUNCTION = re.compile(r"(?:^|[;}])\s*((?:[A-Za-z_]\w*\s+){1,6})void\s+([A-Za-z_]\w*)\s*\(", re.M)
_OF_LANGUAGE = frozenset(
    "static inline extern const volatile constexpr virtual typedef else return "  # noqa: SIM905
    "__inline __inline__ __forceinline__ __noinline__ __device__ __host__ __global".split()
)
_LIKE_KERNEL = re.compile(r"kernel|global|entry", re.I)
_BRACKET = re.compile(r"[()]")
_LONGEST_LIST = 20_000
_MAX_STEPS = 8
"""Limit on macros that stand for one another."""


def defined_words(headers: Sequence[str]) -> dict[str, str]:
    """Object-like macros of headers in any branch, with their first values."""
    found: dict[str, str] = {}
    for text in headers:
        for name, value in _defines(text):
            found.setdefault(name, value)
    return found


def _defines(text: str) -> Iterator[tuple[str, str]]:
    for line in directives(text):
        name, _, value = line.rest.partition(" ")
        if line.keyword == "define" and re.fullmatch(r"\w+", name):
            yield name, value


def marker_words(markers: frozenset[str], tokens: Tokens, headers: Sequence[str]) -> frozenset[str]:
    """`markers`, and the macros that stand for one of them in any branch of a source or its headers."""
    defined = [*tokens.macros.items(), *(pair for text in (tokens.text, *headers) for pair in _defines(text))]
    found = markers
    for _ in range(_MAX_STEPS):
        more = {name for name, value in defined if _says(value, found)}
        if more <= found:
            break
        found |= more
    return found


def _says(value: str, markers: frozenset[str]) -> bool:
    plain = _ATTRIBUTE.sub(" ", value)
    return "(" not in plain and not markers.isdisjoint(plain.split())


def stands_for(name: str, macros: Mapping[str, str]) -> str:
    """The name that a macro's name stands for; the same name if it is none."""
    for _ in range(_MAX_STEPS):
        value = macros.get(name, "")
        if not re.fullmatch(r"[A-Za-z_]\w*", value):
            break
        name = value
    return name


def unknown_introductions(text: str, known: Collection[str]) -> dict[str, list[str]]:
    """Functions of a source by the word that introduces them, if nothing says what the word stands for.

    Args:
        known: macros that are defined.
    """
    masked = re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), blank(text), flags=re.M
    )
    found: dict[str, list[str]] = {}
    for words, name in _functions(masked):
        unknown = [w for w in words if w not in known and w not in _OF_LANGUAGE]
        likely = [w for w in unknown if _LIKE_KERNEL.search(w)] or unknown
        if likely:
            found.setdefault(likely[0], []).append(name)
    named = {word: names for word, names in found.items() if _LIKE_KERNEL.search(word)}
    return named or found


def _functions(masked: str) -> Iterator[tuple[list[str], str]]:
    """Words before `void`, and the name, of each function with a body."""
    for match in _FUNCTION.finditer(masked):
        depth = 1
        for sign in _BRACKET.finditer(masked, match.end(), match.end() + _LONGEST_LIST):
            depth += 1 if sign.group() == "(" else -1
            if depth == 0:
                break
        if depth == 0 and re.match(r"\s*\{", masked[sign.end() : sign.end() + 200]):
            yield match.group(1).split(), match.group(2)
