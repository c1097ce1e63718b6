"""Functions that a rule may move, repeat or skip: known pure ones; and those that never may be."""

import re

SYNCHRONISES = re.compile(
    r"^(__syncthreads\w*|__syncwarp|barrier|work_group_\w+|sub_group_\w+|__shfl\w*|__ballot\w*|__any\w*"
    r"|__all\w*|__activemask|__reduce_\w+|__match_\w+|atomic\w*|atom_\w+|__threadfence\w*|\w*mem_fence"
    r"|printf|assert|__trap|__nanosleep|clock\w*|async_work_group\w*|wait_group_events|malloc|free"
    r"|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion)$"
)
_MATH = (
    r"exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|powr|pown|sqrt|rsqrt|cbrt|rcbrt|sin|cos|tan"
    r"|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|fabs|fma|mad|fmax|fmin"
    r"|max|min|abs|floor|ceil|rint|round|trunc|fmod|remainder|hypot|copysign|isnan|isinf|isfinite"
    r"|signbit|clamp|mix|step|sign|select|saturate|ldexp|native_divide|half_divide|fdividef"
    r"|native_recip|dot|length|normalize|mul24|mad24|popcount|clz|sigmoid"
)
_PURE = re.compile(
    r"^(?:(?:native_|half_|__)?(?:" + _MATH + r")f?"
    r"|__(?:f|d|h|hi|lo|u|i|s)\w+_r[nzud]\w*|__h[a-z]+2?(?:_\w+)?|h(?:exp|log|sqrt|rsqrt|rcp|sin|cos)\w*"
    r"|__(?:half|float|double|bfloat16|int|uint|short|ushort|ll|ull|low|high|nv)\w*2\w+|__ldg|__ld(?:cs|ca|cg|cv|lu)|__st(?:cs|cg|wb|wt)"
    r"|__nv_\w+|nv_\w+|__half2?|half2|(?:u?int|u?char|u?short|u?long|double)[1-4]|u?int(?:8|16)_t"
    r"|__(?:float|int|uint|half|short|ushort|double|longlong)_as_\w+|__byte_perm|__brev|__popcl?l?|__clzl?l?"
    r"|make_\w+|convert_\w+|as_\w+|vload\w+|vstore\w+|static_cast|reinterpret_cast|const_cast"
    r"|sizeof|float[0-9]*|half|int|uint|uint32_t|int32_t|int64_t|uint64_t|size_t|unsigned|double|bool|char"
    r"|read_image\w+|get_image_\w+|\((?:u?(?:char|short|int|long)|float|double|half)(?:[2348]|16)?\)"
    r"|get_(?:local|group|global)_(?:id|size)|get_num_groups|get_global_offset|WS_\w+)$"
)


HINTED_LOADS = frozenset(("__ldg", "__ldcs", "__ldca", "__ldcg", "__ldlu"))
"""Functions of CUDA that load one element, with a hint for the caches."""
HINTED_STORES = frozenset(("__stcs", "__stcg", "__stwb", "__stwt"))
"""Functions of CUDA that store one element, with a hint for the caches."""


def is_known_pure(name: str) -> bool:
    """True for functions of the language whose only effect is their value (or their store)."""
    return _PURE.match(name) is not None


def synchronises(name: str) -> bool:
    """True for barriers, shuffles, atomics, fences and similar functions."""
    return SYNCHRONISES.match(name) is not None


_OPCODES = re.compile(
    r"^(?:griddepcontrol|cvt|lop3|prmt|fma|mul|add|sub|ex2|rcp|rsqrt|tanh|mov|shl|shr|shf|and|or|xor|min|max"
    r"|abs|neg|mad|bfe|bfi|selp|setp|lg2|sqrt)[.\w]*$"
)


def is_plain_assembly(text: str) -> bool:
    """True if every instruction of an `asm` is arithmetic, or only orders whole grids."""
    quoted = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.split(":", 1)[0]))
    code = re.sub(r"\\[nt]|[{}]", " ", quoted)
    words = [line.split()[0] for line in code.split(";") if line.split()]
    return bool(words) and all(w.startswith(".reg") or _OPCODES.match(w) for w in words)
