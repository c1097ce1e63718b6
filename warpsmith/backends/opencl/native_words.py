"""Words of a preprocessed source that may not become native code. Pure.

The text that is looked at is what the compiler's own preprocessor has left: macros, pasted names, line
splices and inactive parts are gone, so that a word is found however it was written, and only where it counts.
"""

import re
from collections.abc import Iterator

from warpsmith.domain.source_text import code_of

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)\b.*$", re.MULTILINE)
_ASSEMBLY = re.compile(r"\b(?:__asm__|__asm|asm)\b")
_THREAD_LOCAL = re.compile(r"\b(?:__thread|_Thread_local|thread_local)\b")
_PRAGMA = re.compile(r"#[ \t]*pragma[ \t]+(?:clang[ \t]+section|weak|redefine_extname)")
# What has begun is not tried again from a later place of the line.
_FUNCTION_POINTERS = re.compile(
    r"^(?>[^\n]*?#[ \t]*+pragma[ \t]+OPENCL)[^\n]*__cl_clang_function_pointers", re.MULTILINE
)
_ATTRIBUTES = ("__attribute__", "__attribute")
_PART = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_REFUSED_ATTRIBUTES = frozenset(
    "alias cleanup common constructor cpu_dispatch cpu_specific destructor ifunc init_priority "  # noqa: SIM905
    "interrupt naked no_caller_saved_registers patchable_function_entry preserve_all preserve_most retain "
    "section selectany target_clones tls_model used weak weak_import weakref xray_always_instrument "
    "xray_log_args".split()
)
_BUILTIN = re.compile(r"\b__builtin_\w+")
_HARMLESS_BUILTIN = re.compile(
    r"__builtin_(?:"
    r"astype|shufflevector|convertvector|nontemporal_(?:load|store)|vectorelements"
    r"|(?:elementwise|reduce|matrix)_\w+"
    r"|expect(?:_with_probability)?|assume|assume_aligned|unreachable|trap|prefetch|unpredictable|is_aligned"
    r"|align_(?:up|down)|constant_p|choose_expr|types_compatible_p|offsetof|object_size|dynamic_object_size"
    r"|(?:ffs|clz|ctz|clrsb|popcount|parity|abs)(?:l|ll|s)?|bswap(?:16|32|64)|bitreverse(?:8|16|32|64)"
    r"|rotate(?:left|right)(?:8|16|32|64)|[su]?(?:add|sub|mul)(?:l|ll)?_overflow|(?:add|sub)c(?:b|s|l|ll)?"
    r"|mem(?:cpy|move|set|cmp|chr)(?:_inline)?|isnan|isinf(?:_sign)?|isfinite|isnormal|signbit[fl]?|fpclassify"
    r"|is(?:greater|less)(?:equal)?|islessgreater|isunordered|(?:huge_val|inf|nan|nans)(?:f|l|f16)?"
    r"|(?:fma|fmod|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|sqrt|cbrt|hypot|floor|ceil|trunc"
    r"|rint|round|nearbyint|roundeven|copysign|fmin|fmax|fabs|fdim|ldexp|remainder|erf|erfc|tgamma|atan2"
    r"|canonicalize|a?(?:sin|cos|tan)h?|l?l?rint|l?l?round)(?:f|l|f16)?"
    r"|ia32_\w*(?:128|256|512)\w*"
    r")"
)
"""Functions of the compiler that compute. Others read a clock, the stack or registers of the machine."""


def refused_word(source: str) -> str:
    """Reason why a preprocessed source may not become native code; empty if it may."""
    code = code_of(_DIRECTIVE.sub("", source))
    if _ASSEMBLY.search(code):
        return "inline assembly is not allowed in OpenCL kernels for CPUs"
    if _THREAD_LOCAL.search(code):
        return "thread-local data is not allowed in OpenCL kernels for CPUs"
    pragma = _PRAGMA.search(code)
    if pragma is not None:
        return f"{pragma.group()!r} is not allowed in OpenCL kernels for CPUs"
    if _FUNCTION_POINTERS.search(code):
        return "'#pragma OPENCL' with function pointers is not allowed in OpenCL kernels for CPUs"
    attribute = next((a for a in _attributes(code) if a.strip("_") in _REFUSED_ATTRIBUTES), "")
    if attribute:
        return f"the attribute {attribute!r} is not allowed in OpenCL kernels for CPUs"
    builtin = next((b for b in _BUILTIN.findall(code) if not _HARMLESS_BUILTIN.fullmatch(b)), "")
    return f"{builtin} is not allowed in OpenCL kernels for CPUs" if builtin else ""


def _attributes(code: str) -> Iterator[str]:
    """All names in the brackets of attributes. Each character is looked at once, however these nest."""
    depth, before = 0, ""
    for found in _PART.finditer(code):
        part = found.group()
        if part == "(" and (depth or before in _ATTRIBUTES):
            depth += 1
        elif part == ")" and depth:
            depth -= 1
        elif depth:
            yield from _NAME.findall(part)
        before = part
