"""Variables that the PTX of a binary declares and never names again. Pure.

NVRTC keeps every constant of every class that a header's templates instantiate. A cubin does not say which of
them are constants, nor which are used: it has the address of each in a table. The PTX names what is used.
"""

import re
from collections.abc import Iterable

_WORD = re.compile(r"[\w$%]+")
_DECLARED = re.compile(
    r"\s*(?:\.(?:visible|weak|extern|common)\s+)*\.global\b(?:\s+\.\w+(?:\s+\d+)?)*\s+([\w$]+)"
)


def never_named(ptx: str, variables: Iterable[str]) -> tuple[str, ...]:
    """Variables that the text declares and never uses, sorted.

    What the text has in comments and strings counts as named, and so does what it does not declare.
    """
    declared: set[str] = set()
    named: set[str] = set()
    for line in ptx.splitlines():
        found = _DECLARED.match(line)
        if found is not None:
            declared.add(found[1])
        named.update(_WORD.findall(line, found.end() if found is not None else 0))
    return tuple(sorted({v for v in variables if v in declared and v not in named}))
