"""Integers that a kernel's text fixes: literals, macros, constants and template arguments."""

import re
from functools import lru_cache

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.source.declarations.named_constants import find_constants, integer_value


def constant_value(facts: Facts, text: str) -> int | None:
    """The value of integer arithmetic over what the source and its headers fix; None for anything else."""
    plain = re.sub(
        r"\b([A-Za-z_]\w*)\b", lambda m: facts.source.template_argument(m[0]) or m[0], text.strip()
    )
    known = dict(_constants_of(facts.source.text))
    for header in facts.source.library:
        known = dict(_constants_of(header)) | known
    return integer_value(plain, known)


@lru_cache(maxsize=64)
def _constants_of(text: str) -> tuple[tuple[str, int], ...]:
    return tuple((c.name, c.value) for c in find_constants(text))
