"""Number literals of C and C++."""

import re

_NUMBER = re.compile(r"(?<![\w.])\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*")
_SUFFIX = r"(?:[uU](?:ll|LL|[lLzZ])?|(?:ll|LL|[lLzZ])[uU]?)?"
_INTEGER = re.compile(rf"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0([0-7]*)|([1-9]\d*)){_SUFFIX}")
_BASES = (16, 2, 8, 10)


def integer_literal(text: str) -> int | None:
    """The value of an integer literal, such as `0x40u` or the octal `0777`; None for anything else."""
    match = _INTEGER.fullmatch(text.replace("'", ""))
    if match is None:
        return None
    digits, base = next((d, b) for d, b in zip(match.groups(), _BASES, strict=True) if d is not None)
    return int(digits or "0", base)


def with_plain_integers(text: str) -> str:
    """`text` with every integer literal in decimal and without a suffix; other numbers stay as they are."""

    def plain(match: re.Match[str]) -> str:
        value = integer_literal(match.group())
        return match.group() if value is None else str(value)

    return _NUMBER.sub(plain, text)
