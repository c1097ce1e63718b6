"""The code of a source, without what only looks like code."""

import re
from collections import Counter

_COMMENTS_AND_STRINGS = re.compile(
    r"""(?P<gone>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*+(?P<end>")?+|(?P<open>/\*.*)""", re.DOTALL
)
_WITH_CHARACTERS = re.compile(
    _COMMENTS_AND_STRINGS.pattern + r"""|'(?:\\.|[^'\\\n])*+(?P<closed>')?+""", re.DOTALL
)


def code_of(source: str, *, characters: bool = True) -> str:
    """The source with a space for each comment and string literal.

    Args:
        characters: character literals go as well. C++ needs False: an apostrophe may part digits there.
    """
    return (_WITH_CHARACTERS if characters else _COMMENTS_AND_STRINGS).sub(_blank, source)


def _blank(found: re.Match[str]) -> str:
    # What has no end is shown: a compiler may see code there.
    return " " if found.lastgroup in ("gone", "end", "closed") else found.group()


_ATOMIC = re.compile(r"\b(?:__)?atom(?:ic)?(?![a-z])")


_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\\\r?\n|[^\n])*", re.MULTILINE)


def uses_atomics(source: str) -> bool:
    """True if code names an atomic operation, whose order is the device's; unused macros do not count."""
    code = code_of(source, characters=False)
    words = Counter(re.findall(r"\w+", code))
    defined = Counter(found.group(1) for found in _MACRO.finditer(code))
    unused = {name for name, times in defined.items() if words[name] == times}
    return bool(_ATOMIC.search(_MACRO.sub(lambda m: " " if m.group(1) in unused else m.group(), code)))


MAX_NESTING = 256
"""Limit on brackets within each other. Compilers have the same limit or one near it."""
_BRACKETS = re.compile(r"[][(){}]")


def nesting_problem(source: str) -> str:
    """Reason to keep a source from readers of C, which recurse with its brackets; empty if there is none."""
    depth = 0
    for bracket in _BRACKETS.finditer(source):
        depth = depth + 1 if bracket.group() in "([{" else max(0, depth - 1)
        if depth > MAX_NESTING:
            line = source.count("\n", 0, bracket.start()) + 1
            return f"brackets are nested deeper than {MAX_NESTING} in line {line}"
    return ""
