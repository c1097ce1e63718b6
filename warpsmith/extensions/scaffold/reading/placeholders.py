"""Placeholders that a generator of code fills in, in places where no C can have them."""

import re
from dataclasses import dataclass

from warpsmith.source.lexing.tokens import blank

# A remainder has an operand before its `%`, and a nested initialiser ends with its braces.
_PLACEHOLDER = re.compile(
    r"""(?P<at>@[A-Za-z_]\w*@)
    |(?P<dollar>\$(?:\([^()\n]{1,80}\)|\{[^{}\n]{1,80}\}))
    |(?P<statement>\{%[^\n{}]{0,80}%\})
    |(?P<braces>\{\{[ \t]*[A-Za-z_][\w.| \t]{0,80}\}\})(?=[ \t]*[\w*(&\[])
    |(?:[(,;{=*/<&|!?:^]|\b(?:__global|__local|__constant|__kernel|const|void|return|static|inline|volatile))\s{0,80}
     (?P<percent>%[A-Za-z_]\w*)""",
    re.X,
)


@dataclass(frozen=True)
class Placeholder:
    """A word of a code template."""

    text: str
    line: int
    """Line, from 1."""


def first_placeholder(text: str) -> Placeholder | None:
    """The first placeholder outside of comments and strings; None if a source has none."""
    match = _PLACEHOLDER.search(blank(text))
    if match is None:
        return None
    kind = match.lastgroup or ""
    return Placeholder(match.group(kind), text.count("\n", 0, match.start(kind)) + 1)
