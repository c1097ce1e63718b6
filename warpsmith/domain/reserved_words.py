"""Words of C, C++, OpenCL and the language of expressions, which are no names."""

import keyword

from warpsmith.domain.expressions import FUNCTIONS
from warpsmith.domain.language import Language

_C = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int "  # noqa: SIM905
    "long register return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while".split()
)
_CPP = frozenset(
    "alignas alignof and and_eq asm bitand bitor bool catch class compl concept const_cast consteval "  # noqa: SIM905
    "constexpr constinit decltype delete dynamic_cast explicit export false friend mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires "
    "static_assert static_cast template this thread_local throw true try typeid typename using virtual "
    "wchar_t xor xor_eq".split()
)
_OPENCL = frozenset("bool constant global kernel local private restrict".split())  # noqa: SIM905
C_WORDS = _C | _CPP | {"defined", "half", "restrict"}
"""Names that no macro may have, because it would change the meaning of the source."""


def reserved(name: str) -> str:
    """The reason why no macro may have this name; empty if one may."""
    if name in C_WORDS or name.startswith("__"):
        return "is reserved in C"
    return "is a word of the expression language" if name in FUNCTIONS else reserved_as_size(name)


def reserved_as_size(name: str) -> str:
    """The reason why no dimension may have this name; empty if one may."""
    if keyword.iskeyword(name):
        return "is a word of the expression language"
    return "is reserved in C" if name in _C else ""


def reserved_as_argument(name: str, language: Language) -> str:
    """The reason why no argument of a kernel may have this name; empty if one may."""
    words = _C | (_OPENCL if language.is_opencl_c else _CPP)
    return "is reserved in C" if language.is_c_text and not language.is_recorded and name in words else ""
