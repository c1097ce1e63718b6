"""Filter on texts of CUDA sources: those that could use an environment probe at all. Pure.

No other source is compiled a second time. What the filter lets through may be as plain as a comment; what it
keeps back can name no probe: not by itself, not by pasting and not by a macro of the toolkit.
"""

import re
from collections.abc import Iterable

from warpsmith.backends.probes.preprocessor_probes import PROBES

_WORDS = "|".join((*PROBES, *(f"__builtin_{what}" for what in ("FILE", "LINE", "FUNCTION", "COLUMN"))))
_OF_TOOLKIT = (
    r"assert|source_location",
    # Macros of CUB, Thrust, libcu++, cooperative groups and NVTX that hand the place on, or paste names.
    r"CubDebug\w*|CUB_(?:COMP|TEMP)\w*|THRUST_(?:COMP|PP)\w*|LIBCUDACXX_\w+",
    r"_(?:CCCL|CG|CUB|CUDA|LIBCUDACXX|NV|NVTX)_[A-Z]\w*|(?i:nvtx)\w*|WARPSMITH_\w+",
    r"\w*(?:CONCAT|PASTE)\w*|__\w+_CORE|__location__|__loc_sc__",
)
_TELLING = re.compile(rf"##|%:%:|\?\?=|\\[uU]|\b(?:{_WORDS}|{'|'.join(_OF_TOOLKIT)})\b")
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t\f\v]*\r?\n")
_INCLUDE = re.compile(r"(?:#|%:|\?\?=)\s*(?:include|include_next|import|embed)\b[ \t]*(.*)")
_PLAIN = re.compile(r"<([^>\n]+)>|\"([^\"\n]+)\"")


def may_probe(texts: Iterable[str]) -> bool:
    """True if texts of a job, or its options, name an environment probe or could make one."""
    return any(_TELLING.search(_SPLICE.sub("", text)) for text in texts)


def included(texts: Iterable[str]) -> tuple[str, ...]:
    """Names of the files that texts include; an empty one for a name that a macro makes."""
    lines = (found for text in texts for found in _INCLUDE.findall(_SPLICE.sub("", text)))
    names = ((_PLAIN.match(line), line) for line in lines)
    return tuple(dict.fromkeys((plain[1] or plain[2]) if plain else "" for plain, _ in names))
