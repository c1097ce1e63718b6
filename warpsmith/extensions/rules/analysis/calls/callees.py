"""What is known of functions that kernels call: one table of effects, each with its reason."""

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from tree_sitter import Node

from warpsmith.source.tree.syntax_tree import Source


class Effect(Enum):
    """What a call does to others than the thread that makes it."""

    VALUE = auto()
    """Nothing: it gives a value, or loads and stores what its pointer arguments lead to."""
    HINT = auto()
    """Nothing that a result depends on."""
    WAITS = auto()
    """It waits for other grids: it may be made again, but no access to memory may move over it."""
    COLLECTIVE = auto()
    """Threads of a warp or block reach it together, and hand over values or memory."""
    OUTSIDE = auto()
    """Others see that it was made, and how often."""


@dataclass(frozen=True)
class Callee:
    """Functions of which the same is known."""

    names: re.Pattern[str]
    effect: Effect
    reason: str
    reads: tuple[int, ...] = ()
    """Places of the pointer arguments that the function reads through; empty: decided from its name."""
    writes: tuple[int, ...] = ()
    """Numbers of the arguments through which it writes."""


def _of(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})\Z", re.X)


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
    Callee(
        _of(
            r"""__syncthreads\w*|barrier|work_group_(?!barrier)\w+|work_group_barrier|async_work_group\w*
            |wait_group_events"""
        ),
        Effect.COLLECTIVE,
        "which every thread of the block must reach",
    ),
    Callee(
        _of(
            r"""__syncwarp|sub_group_\w+|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask|__reduce_\w+
            |__match_\w+"""
        ),
        Effect.COLLECTIVE,
        "which the threads of a warp reach together",
    ),
    Callee(
        _of(r"this_thread_block|this_grid|tiled_partition|coalesced_threads|labeled_partition"),
        Effect.COLLECTIVE,
        "a group of threads that reach its calls together",
    ),
    Callee(
        _of(r"atomic\w*|atom_\w+|__threadfence\w*|\w*mem_fence"),
        Effect.OUTSIDE,
        "by which threads hand over memory",
    ),
    Callee(
        _of(r"printf|__trap|__nanosleep|clock\w*|malloc|free"),
        Effect.OUTSIDE,
        "of which more is seen than a value",
    ),
    Callee(_of(r"prefetch"), Effect.HINT, "it moves nothing but lines of a cache"),
    Callee(_of(r"assert"), Effect.VALUE, "if it fails the launch ends: the user's kernel is wrong already"),
    Callee(
        _of(r"infinity|lowest|quiet_NaN|epsilon|denorm_min"),
        Effect.VALUE,
        "a constant of std::numeric_limits",
    ),
    Callee(
        _of(r"cudaGridDependencySynchronize"),
        Effect.WAITS,
        "before which earlier grids may still write: it may be called again, and memory is used as before",
    ),
    Callee(
        _of(r"cudaTriggerProgrammaticLaunchCompletion"),
        Effect.HINT,
        "it lets the next grid start, whose wait still awaits the end of this one",
    ),
    Callee(
        _of(r"(?:native_|half_|__)?(?:" + _MATH + r")f?|__(?:f|d|h|hi|lo|u|i|s)\w+_r[nzud]\w*"),
        Effect.VALUE,
        "mathematics, also of one rounding",
    ),
    Callee(
        _of(r"__h[a-z]+2?(?:_\w+)?|h(?:exp|log|sqrt|rsqrt|rcp|sin|cos)\w*"),
        Effect.VALUE,
        "mathematics of the half and bfloat16 headers",
    ),
    Callee(
        _of(
            r"""__(?:half|float|double|bfloat16|int|uint|short|ushort|ll|ull|low|high|nv)\w*2\w+
            |__nv_(?!atomic)\w+|nv_\w+|__half_raw|__half2?|half2
            |__(?:float|int|uint|half|short|ushort|double|longlong)_as_\w+"""
        ),
        Effect.VALUE,
        "conversions and types of the half, bfloat16 and FP8 headers",
    ),
    Callee(
        _of(
            r"__byte_perm|__brevl?l?|__popcl?l?|__clzl?l?|__ffsl?l?|__dp[24]a\w*|__v\w+[24]|__funnelshift_\w+"
        ),
        Effect.VALUE,
        "arithmetic of bits",
    ),
    Callee(
        _of(r"__ld(?:g|cs|ca|cg|cv|lu)|vload\w+"), Effect.VALUE, "one load, which `Facts.accesses` reports"
    ),
    Callee(_of(r"__st(?:cs|cg|wb|wt)|vstore\w+"), Effect.VALUE, "one store, which `Facts.accesses` reports"),
    Callee(
        _of(r"memcpy|__builtin_memcpy|memmove"),
        Effect.VALUE,
        "as many bytes as its third argument says",
        reads=(1,),
        writes=(0,),
    ),
    Callee(
        _of(
            r"""static_cast|reinterpret_cast|const_cast|bit_cast|__builtin_bit_cast
            |make_\w+|convert_\w+|as_\w+|sizeof|forward|move|__builtin_(?:expect|assume\w*)
            |\((?:u?(?:char|short|int|long)|float|double|half)(?:[2348]|16)?\)"""
        ),
        Effect.VALUE,
        "the same value as another type",
    ),
    Callee(
        _of(
            r"""float[0-9]*|(?:u?int|u?char|u?short|u?long|double)[1-4]|u?int(?:8|16|32|64)_t|half|int|uint
            |size_t|ptrdiff_t|uintptr_t|unsigned|double|bool|u?char|u?short|u?long|dim3"""
        ),
        Effect.VALUE,
        "a conversion to a type of the language",
    ),
    Callee(
        _of(r"read_image\w+|get_image_\w+"), Effect.VALUE, "an image, which no kernel both reads and writes"
    ),
    Callee(
        _of(r"get_(?:local|group|global)_(?:id|size)|get_num_groups|get_global_offset"),
        Effect.VALUE,
        "a thread's place",
    ),
    Callee(_of(r"WS_\w+"), Effect.VALUE, "macros of the rules"),
)
HINTED_LOADS = frozenset(("__ldg", "__ldcs", "__ldca", "__ldcg", "__ldlu"))
"""Functions of CUDA that load one element, with a hint for the caches."""
HINTED_STORES = frozenset(("__stcs", "__stcg", "__stwb", "__stwt"))
"""Functions of CUDA that store one element, with a hint for the caches."""


@lru_cache(maxsize=4096)
def known(name: str) -> Callee | None:
    """What is known of a called name; None if nothing is."""
    return next((callee for callee in _TABLE if callee.names.match(name)), None)


def is_known_pure(name: str) -> bool:
    """True for functions of the language whose only effect is their value (or their store)."""
    callee = known(name)
    return callee is not None and callee.effect is Effect.VALUE


def synchronises(name: str) -> bool:
    """True for barriers, shuffles, atomics, fences and similar functions."""
    callee = known(name)
    return callee is not None and callee.effect not in (Effect.VALUE, Effect.HINT)


def is_of_constant_size(source: Source, call: Node) -> bool:
    """True if a copy's size is a number, or that of a type or an object."""
    size = source.of(source.arguments(call)[-1]) if source.arguments(call) else ""
    return re.fullmatch(r"\d+[uUlL]*|sizeof\s*(?:\(.*\)|\s\w+)", size, re.S) is not None


_OPCODES = re.compile(
    r"^(?:cvt|lop3|prmt|fma|mul|add|sub|ex2|rcp|rsqrt|tanh|mov|shl|shr|shf|and|or|xor|min|max"
    r"|abs|neg|mad|bfe|bfi|selp|setp|lg2|sqrt)[.\w]*$"
)


def assembly_effect(text: str) -> Effect:
    """The effect of an `asm`: of all its instructions the one that permits the least."""
    quoted = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.split(":", 1)[0]))
    code = re.sub(r"\\[nt]|[{}]", " ", quoted)
    words = [line.split()[0] for line in code.split(";") if line.split()]
    effects = [_instruction(word) for word in words]
    return max(effects, key=lambda effect: effect.value, default=Effect.OUTSIDE)


def _instruction(word: str) -> Effect:
    if word.startswith(".reg") or _OPCODES.match(word):
        return Effect.VALUE
    return {"griddepcontrol.wait": Effect.WAITS, "griddepcontrol.launch_dependents": Effect.HINT}.get(
        word, Effect.OUTSIDE
    )
