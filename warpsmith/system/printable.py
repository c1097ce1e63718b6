"""Text from elsewhere, as a terminal or a log may show it: no character of it does anything."""

import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Control characters but line feeds and tabs, and those that change the direction of writing."""
_DOES_SOMETHING = re.compile(f"[{_CONTROLS}]")
_ENDS_A_LINE = re.compile(f"[{_CONTROLS}\n]")


def printable(text: str) -> str:
    """The text with escapes such as `\\u001b` for control characters; lines remain lines.

    JSON remains JSON: its strings may hold the same escapes.
    """
    return _DOES_SOMETHING.sub(_escape, text)


def one_line(text: str) -> str:
    """Text for output, with line ends escaped too, so that it stays within a line."""
    return _ENDS_A_LINE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return "\\n" if found.group() == "\n" else f"\\u{ord(found.group()):04x}"
