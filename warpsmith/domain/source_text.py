"""The code of a source, without what only looks like code."""

import re

_COMMENTS_AND_STRINGS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_WITH_CHARACTERS = re.compile(_COMMENTS_AND_STRINGS.pattern + r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def code_of(source: str, *, characters: bool = True) -> str:
    """The source with a space for each comment and string literal.

    Args:
        characters: character literals go as well. C++ needs False: an apostrophe may part digits there.
    """
    return (_WITH_CHARACTERS if characters else _COMMENTS_AND_STRINGS).sub(" ", source)
