"""Uses of a kernel's pointers in its body: read, written, or unknown."""

import re
from dataclasses import dataclass

from warpsmith.source.lexing.tokens import blank

_CAST = r"(?:\([\w\s:*]+\)|(?:reinterpret|static|const)_cast<[^()]*>\()\s*"
_ADDRESS = re.compile(r"(?<!&)&$|(?:[=(,){};]|\breturn)\s*&\s*\(+$")
"""Text before `x[i]` if its address may be taken."""
_STORES = re.compile(r"\b(?:\w*[sS]tore\w*|__st\w+)\s*(?:<[\w\s:,]*>\s*)?\($")
_REFERENCE = re.compile(r"(const\s+)?[\w:>]+\s*&\s*\w+\s*=\s*\(*$")
"""Text before `x[i]` if a reference is bound to it."""
_ARRAY_KEPT = re.compile(rf"(const\s+)?[\w:>]+\s*\*\s*(?:const\s+|__restrict__\s+)*\w+\s*=\s*(?:{_CAST})*$")
"""Text before `x[i].field` if a pointer to the field, an array, is kept."""
_AS_POINTER = re.compile(r"(?:[;{}(=,]\s*\*\s*|_cast\s*<[^()]*>\s*)\($")
"""Text before `x[i].field` if the field, an array, is used as a pointer."""
_LOADS = re.compile(r"\b(?:\w*[lL]oad\w*|__ld\w+)\s*(?:<[\w\s:,]*>\s*)?\($")


@dataclass(frozen=True)
class Usage:
    """Observed uses of one pointer."""

    is_read: bool
    """True if it reads elements that it has not stored before."""
    is_written: bool
    is_passed_on: bool
    """True if the pointer is passed on: to a call, a struct or an address computation."""


def pointer_usage(body: str, name: str) -> Usage:
    """Uses of the pointer `name` in a body, including those through local pointers made from it."""
    text = re.sub(r"^[ \t]*#.*$", lambda m: " " * len(m.group()), blank(body), flags=re.M)
    read = written = passed = False
    names = [name]
    for alias in names:
        for match in re.finditer(rf"(?<![\w.]){re.escape(alias)}\b(?!\s*::)", text):
            if re.search(r"->\s*$", text[: match.start()]) or _declares(text, match.start(), match.end()):
                continue
            other = _alias(text, match.start(), match.end())
            if other is not None:
                names += [other] if other not in names else []
                continue
            what = _one_use(text, match.start(), match.end())
            read |= "r" in what
            written |= "w" in what
            passed |= "p" in what
    return Usage(read and not (len(names) == 1 and _stores_first(text, name)), written, passed)


def _stores_first(text: str, name: str) -> bool:
    """True if a body stores each element before it reads it, as `y[i] = 0; ... y[i] += x` does.

    All accesses have one index of which nothing changes, and the first is a store in the block of the others.
    """
    opened = [m.end() - 1 for m in re.finditer(rf"(?<![\w.]){re.escape(name)}\s*\[", text)]
    indices = [text[at : _closing(text, at) + 1] for at in opened]
    if len({re.sub(r"\s", "", index) for index in indices}) != 1:
        return False
    stored = re.match(r"\s*=(?!=)([^;]*);", text[opened[0] + len(indices[0]) :])
    begins = re.search(rf"[;{{}}]\s*{re.escape(name)}\s*$", text[: opened[0]])
    if stored is None or begins is None or re.search(rf"\b{re.escape(name)}\b", stored.group(1)):
        return False
    after = text[opened[0] : _closing(text, opened[0], "{}")]
    words = "|".join(map(re.escape, re.findall(r"[^\W\d]\w*", indices[0]))) or r"\b\B"
    changed = rf"\b(?:{words})\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*(?:{words})\b"
    return opened[-1] < opened[0] + len(after) and re.search(changed, after) is None


def _alias(text: str, start: int, end: int) -> str | None:
    """The local pointer that a declaration initialises with this use: `x` in `T* x = name + i * n;`."""
    begin = max(text.rfind(c, 0, start) for c in ";{}") + 1
    before = text[begin:start]
    declared = re.fullmatch(rf"[\w\s:<>,]*\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=\s*(?:{_CAST})*", before)
    whole = before.strip() == "" and re.match(r"\s*\*?\s*=[^=]", text[end:])
    if declared is None or whole:
        return None
    return declared.group(1) if re.match(r"\s*(?:\)\s*)*(?:[+;-])", text[end:]) else None


def _declares(text: str, start: int, end: int) -> bool:
    """True if this is the declaration of a local pointer."""
    typed = re.search(r"[\w>]\s*\*\s*(?:const\s+|__restrict__\s+)*$", text[max(0, start - 80) : start])
    return typed is not None and re.match(r"\s*=[^=]", text[end:]) is not None


def _one_use(text: str, start: int, end: int) -> str:
    """Letters of the effects of one use: r(ead), w(ritten), p(assed on)."""
    before = text[:start].rstrip()
    at = end
    while at < len(text) and text[at].isspace():
        at += 1
    if at < len(text) and text[at] == "[":
        return _access(before, text[_closing(text, at) + 1 :])
    if text.startswith("->", at):
        return _access(before, text[at:])
    if _is_dereference(before):
        return _access(before[:-1], text[end:])
    if re.match(r"\s*(?:\+=|-=|\+\+)", text[end:]) or re.match(r"\s*[!=]=", text[end:]):
        return ""
    argument = before[: _call_start(before) + 1]
    if _STORES.search(argument):
        return "w"
    return "r" if _LOADS.search(argument) else "p"


def _access(before: str, after: str) -> str:
    """Effects on an element, given what stands around it. Its fields and their elements are parts of it."""
    before, after, has_field = _around(before, after.lstrip())
    bound = _REFERENCE.search(before) or (_ARRAY_KEPT.search(before) if has_field else None)
    if bound is not None:
        return "r" if bound.group(1) else "p"
    if _ADDRESS.search(before) or (has_field and _AS_POINTER.search(before)):
        return "p"
    if re.match(r"(?:[-+*/%&|^]|<<|>>)=|\+\+|--", after) or before.endswith(("++", "--")):
        return "rw"
    return "w" if re.match(r"=(?!=)", after) else "r"


def _around(before: str, after: str) -> tuple[str, str, bool]:
    """Text before and after the outermost part of an element, `(x[i]).field[k]`; True if it is a field."""
    has_field = False
    while True:
        member = re.match(r"(?:\.|->)\s*\w+\s*", after)
        if member is not None:
            after, has_field = after[member.end() :], True
        elif has_field and after.startswith("["):
            after = after[_closing(after, 0) + 1 :].lstrip()
        elif after.startswith(")") and re.search(r"(?:^|[^\w\s>])\s*\($", before):
            before, after = before[:-1].rstrip(), after[1:].lstrip()
        else:
            return before, after, has_field


def _is_dereference(before: str) -> bool:
    return before.endswith("*") and re.search(r"[;{}(=,]\s*\*$", before) is not None


def _closing(text: str, opening: int, pair: str = "[]") -> int:
    """Position of what closes the bracket at `opening`, or the block of another character there."""
    depth = 0 if text[opening] == pair[0] else 1
    for at in range(opening, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if depth == 0:
            return at
    return len(text) - 1


def _call_start(text: str) -> int:
    """Position of the innermost open parenthesis; -1 if there is none."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth < 0:
            return at
        if text[at] in ";{}":
            return -1
    return -1
