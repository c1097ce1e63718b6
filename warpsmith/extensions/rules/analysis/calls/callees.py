"""Effects of functions that kernels call: a table, each row with its reason."""

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from tree_sitter import Node

from warpsmith.source.tree.syntax_tree import Source


class CallEffect(Enum):
    """Effect of a call on others than the thread that makes it."""

    VALUE = auto()
    """Nothing: it gives a value, or loads and stores what its pointer arguments lead to."""
    HINT = auto()
    """Nothing that a result depends on."""
    WAITS = auto()
    """Waits for other grids: the call may be made again, but no access to memory may move over it."""
    COLLECTIVE = auto()
    """Threads of a warp or block reach it together, and hand over values or memory."""
    OUTSIDE = auto()
    """Others see that it was made, and how often."""


@dataclass(frozen=True)
class Callee:
    """Functions of which the same is known."""

    names: re.Pattern[str]
    effect: CallEffect
    reason: str
    reads: tuple[int, ...] = ()
    """Places of the pointer arguments that the function reads through; empty: decided from its name."""
    writes: tuple[int, ...] = ()
    """Numbers of the arguments through which it writes."""


def _row(
    names: str, effect: CallEffect, reason: str, reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()
) -> Callee:
    """The callees whose whole name matches a pattern."""
    return Callee(re.compile(rf"(?:{names})\Z", re.X), effect, reason, reads, writes)


_MATH = r"""
  exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|powr|pown|sqrt|rsqrt|cbrt|rcbrt|sin|cos|tan
  |sincos|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|fabs|fma|mad|fmax|fmin
  |max|min|abs|floor|ceil|rint|round|trunc|fmod|remainder|hypot|copysign|isnan|isinf|isfinite
  |signbit|clamp|mix|step|sign|select|saturate|ldexp|native_divide|half_divide|fdividef
  |native_recip|dot|cross|length|distance|normalize|fast_(?:length|distance|normalize)|mul24|mad24|umul24|u?mul(?:64)?hi|mul_hi|u?sad|popcount|clz|ctz|sigmoid
  |nan|nextafter|fdim|frexp|fract|modf|remquo|lgamma|lgamma_r|tgamma|ilogb|logb|rootn|maxmag|minmag
  |(?:sin|cos|tan|asin|acos|atan|atan2)pi|sincospi|degrees|radians|smoothstep|nearbyint|l?lrint|l?lround
  |isnormal|isordered|isunordered|is(?:not)?equal|is(?:greater|less)(?:equal)?|islessgreater|any|all
  |bitselect|shuffle2?|rotate|upsample|abs_diff|(?:add|sub|mad)_sat|r?hadd|mad_hi|vec_step
"""
# Those that give a second result write it through a pointer, which `Facts.accesses` reports.

_TABLE = (
    _row(
        r"""__syncthreads\w*|barrier|work_group_(?!barrier)\w+|work_group_barrier|async_work_group\w*
            |wait_group_events""",
        CallEffect.COLLECTIVE,
        "which every thread of the block must reach",
    ),
    _row(
        r"""__syncwarp|sub_group_\w+|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask|__reduce_\w+
            |__match_\w+""",
        CallEffect.COLLECTIVE,
        "which the threads of a warp reach together",
    ),
    _row(
        r"this_thread_block|this_grid|tiled_partition|coalesced_threads|labeled_partition",
        CallEffect.COLLECTIVE,
        "a group of threads that reach its calls together",
    ),
    _row(
        r"atomic\w*|atom_\w+|__threadfence\w*|\w*mem_fence",
        CallEffect.OUTSIDE,
        "by which threads hand over memory",
    ),
    _row(
        r"printf|__trap|__nanosleep|clock\w*|malloc|free",
        CallEffect.OUTSIDE,
        "of which more is seen than a value",
    ),
    _row(r"prefetch", CallEffect.HINT, "it moves nothing but lines of a cache"),
    _row(r"assert", CallEffect.VALUE, "if it fails the launch ends: the user's kernel is wrong already"),
    _row(
        r"infinity|lowest|quiet_NaN|epsilon|denorm_min", CallEffect.VALUE, "a constant of std::numeric_limits"
    ),
    _row(
        r"cudaGridDependencySynchronize",
        CallEffect.WAITS,
        "before which earlier grids may still write: it may be called again, and memory is used as before",
    ),
    _row(
        r"cudaTriggerProgrammaticLaunchCompletion",
        CallEffect.HINT,
        "it lets the next grid start, whose wait still awaits the end of this one",
    ),
    _row(
        r"(?:native_|half_|__)?(?:" + _MATH + r")f?|__(?:f|d|h|hi|lo|u|i|s)\w+_r[nzud]\w*",
        CallEffect.VALUE,
        "mathematics, also of one rounding",
    ),
    _row(
        r"__h[a-z]+2?(?:_\w+)?|h(?:exp|log|sqrt|rsqrt|rcp|sin|cos)\w*",
        CallEffect.VALUE,
        "mathematics of the half and bfloat16 headers",
    ),
    _row(
        r"""__(?:half|float|double|bfloat16|int|uint|short|ushort|ll|ull|low|high|nv)\w*2\w+
            |__nv_(?!atomic)\w+|nv_\w+|__half_raw|__half2?|half2
            |__(?:float|int|uint|half|short|ushort|double|longlong)_as_\w+""",
        CallEffect.VALUE,
        "conversions and types of the half, bfloat16 and FP8 headers",
    ),
    _row(
        r"__byte_perm|__brevl?l?|__popcl?l?|__clzl?l?|__ffsl?l?|__dp[24]a\w*|__v\w+[24]|__funnelshift_\w+",
        CallEffect.VALUE,
        "arithmetic of bits",
    ),
    _row(r"__ld(?:g|cs|ca|cg|cv|lu)|vload\w+", CallEffect.VALUE, "one load, which `Facts.accesses` reports"),
    _row(r"__st(?:cs|cg|wb|wt)|vstore\w+", CallEffect.VALUE, "one store, which `Facts.accesses` reports"),
    _row(
        r"memcpy|__builtin_memcpy|memmove",
        CallEffect.VALUE,
        "as many bytes as its third argument says",
        reads=(1,),
        writes=(0,),
    ),
    _row(
        r"""static_cast|reinterpret_cast|const_cast|bit_cast|__builtin_bit_cast
            |make_\w+|convert_\w+|as_\w+|sizeof|forward|move|__builtin_(?:expect|assume\w*)
            |\((?:u?(?:char|short|int|long)|float|double|half)(?:[2348]|16)?\)""",
        CallEffect.VALUE,
        "the same value as another type",
    ),
    _row(
        r"""float[0-9]*|(?:u?int|u?char|u?short|u?long|double)[1-4]|u?int(?:8|16|32|64)_t|half|int|uint
            |size_t|ptrdiff_t|uintptr_t|unsigned|double|bool|u?char|u?short|u?long|dim3""",
        CallEffect.VALUE,
        "a conversion to a type of the language",
    ),
    _row(r"read_image\w+|get_image_\w+", CallEffect.VALUE, "an image, which no kernel both reads and writes"),
    _row(
        r"get_(?:local|group|global)_(?:id|size)|get_num_groups|get_global_offset",
        CallEffect.VALUE,
        "a thread's place",
    ),
    _row(r"WS_\w+", CallEffect.VALUE, "macros of the rules"),
)
HINTED_LOADS = frozenset(("__ldg", "__ldcs", "__ldca", "__ldcg", "__ldlu"))
"""Functions of CUDA that load one element, with a hint for the caches."""
HINTED_STORES = frozenset(("__stcs", "__stcg", "__stwb", "__stwt"))
"""Functions of CUDA that store one element, with a hint for the caches."""


@lru_cache(maxsize=4096)
def known(name: str) -> Callee | None:
    """The row of a called name; None if the table has none."""
    return next((callee for callee in _TABLE if callee.names.match(name)), None)


def is_known_pure(name: str) -> bool:
    """True for functions of the language whose only effect is their value (or their store)."""
    callee = known(name)
    return callee is not None and callee.effect is CallEffect.VALUE


def synchronises(name: str) -> bool:
    """True for barriers, shuffles, atomics, fences and similar functions."""
    callee = known(name)
    return callee is not None and callee.effect not in (CallEffect.VALUE, CallEffect.HINT)


def is_of_constant_size(source: Source, call: Node) -> bool:
    """True if a copy's size is a number, or that of a type or an object."""
    size = source.of(source.arguments(call)[-1]) if source.arguments(call) else ""
    return re.fullmatch(r"\d+[uUlL]*|sizeof\s*(?:\(.*\)|\s\w+)", size, re.S) is not None


_OPCODES = re.compile(
    r"^(?:cvt|lop3|prmt|fma|mul|add|sub|ex2|rcp|rsqrt|tanh|mov|shl|shr|shf|and|or|xor|min|max"
    r"|abs|neg|mad|bfe|bfi|selp|setp|lg2|sqrt)[.\w]*$"
)


def assembly_effect(text: str) -> CallEffect:
    """The effect of an `asm`: of all its instructions the one that permits the least."""
    quoted = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.split(":", 1)[0]))
    code = re.sub(r"\\[nt]|[{}]", " ", quoted)
    words = [line.split()[0] for line in code.split(";") if line.split()]
    effects = [_instruction(word) for word in words]
    return max(effects, key=lambda effect: effect.value, default=CallEffect.OUTSIDE)


def _instruction(word: str) -> CallEffect:
    if word.startswith(".reg") or _OPCODES.match(word):
        return CallEffect.VALUE
    return {"griddepcontrol.wait": CallEffect.WAITS, "griddepcontrol.launch_dependents": CallEffect.HINT}.get(
        word, CallEffect.OUTSIDE
    )
