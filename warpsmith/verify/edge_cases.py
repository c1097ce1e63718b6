"""Edge cases: small inputs whose values, relations and special values are chosen by lot from the secret seed.

An edge case's kind follows from its number, and everything else from the seed, so that all processes draw the
same. Which buffers take part differs by round: in the first round all do, and later each by lot.
"""

import hashlib
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.draw import Distribution
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan
from warpsmith.verify.dtypes import narrowed

Array = NDArray[np.generic]
Floats = NDArray[np.float64]


class EdgeCase(StrEnum):
    """Property of the drawn inputs that an edge case tries."""

    PLAIN = "plain"
    LARGER = "larger"
    HUGE = "huge"
    TINY = "tiny"
    BALANCED = "balanced"
    ONE_TINY = "one_tiny"
    WHOLE = "whole"
    FALLING = "falling"
    RISING = "rising"
    CONSTANT_ROWS = "constant_rows"
    CONSTANT = "constant"
    NEGATIVE = "negative"
    POSITIVE = "positive"
    FAR_BELOW = "far_below"
    NEAR_TIES = "near_ties"
    NOT_A_NUMBER = "not_a_number"
    INFINITE = "infinite"
    EQUAL = "equal"
    OPPOSITE = "opposite"
    HALVES = "halves"
    SCALARS = "scalars"
    INTEGERS = "integers"


KINDS = tuple(EdgeCase)
ROUNDS = 3
EDGE_CASES = len(KINDS) * ROUNDS
"""Number of edge cases that are tried."""
SCALED = frozenset({EdgeCase.PLAIN, EdgeCase.LARGER, EdgeCase.HUGE, EdgeCase.TINY, EdgeCase.BALANCED})
"""Kinds in which all elements of a buffer have one scale: outputs are judged by their own size, so there
must be many."""
CANCELLING = frozenset({EdgeCase.CONSTANT, EdgeCase.CONSTANT_ROWS, EdgeCase.EQUAL, EdgeCase.OPPOSITE})
"""Kinds in which outputs may cancel, and then consist of roundings."""
SPECIAL = frozenset({EdgeCase.NOT_A_NUMBER, EdgeCase.INFINITE})
_SHARED = frozenset({EdgeCase.EQUAL, EdgeCase.OPPOSITE})
_EXPONENTS = {EdgeCase.LARGER: (1, 21), EdgeCase.HUGE: (23, 46), EdgeCase.TINY: (-60, -44)}
_SHORT = {Dtype.FLOAT16: (-7, 6), Dtype.FLOAT8_E5M2: (-7, 6), Dtype.FLOAT8_E5M2FNUZ: (-7, 6)}
_SHORTEST = (-4, 3)
_PART = 0.5
_SPECIALS = 3
"""Number of special values among a buffer's elements."""
_LEAST_SIZE = 2.0**-6
_WIDE_INTEGERS = ((-128, 128), (0, 256), (-32_768, 32_768), (-(2**31), 2**31))


def kind_of(variant: int) -> EdgeCase:
    """The kind of the world with this number."""
    return KINDS[variant % len(KINDS)]


def stream_name(buffer: BufferPlan, variant: int) -> str:
    """The name under which a buffer's values are drawn; buffers that must be equal have the same."""
    return f"world {buffer.dtype.value}" if kind_of(variant) in _SHARED else buffer.name


def bounds_of_integers(buffer: BufferPlan, variant: int, seed: int) -> tuple[int, int] | None:
    """Range of an integer input whose job declares none; None: the usual one."""
    if buffer.draw is not None or buffer.dtype.is_float or kind_of(variant) is not EdgeCase.INTEGERS:
        return None
    bits = 8 * buffer.dtype.size_bytes
    least, most = (
        (0, 2**bits) if buffer.dtype.value.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    )
    low, high = _WIDE_INTEGERS[int(_lots(seed, variant).integers(0, len(_WIDE_INTEGERS)))]
    return max(low, least), max(min(high, most), 1)


def edge_case_values(values: Array, buffer: BufferPlan, seed: int, variant: int) -> Array:
    """Drawn values of a buffer, as this edge case has them. Values within a declared range stay within it."""
    kind, lots = kind_of(variant), _lots(seed, variant, buffer.name)
    if buffer.dtype is Dtype.BOOL or not values.size or not _takes_part(kind, variant, lots):
        return values
    ordered = _arranged(kind, values, buffer)
    if ordered is not None:
        return ordered
    is_free = buffer.draw is None or buffer.draw.distribution is Distribution.NORMAL
    if not buffer.dtype.is_float or buffer.dtype is Dtype.FLOAT8_E8M0FNU or not is_free:
        return values
    wide = values.astype(np.float64)
    changed = (
        _scaled(kind, wide, buffer.dtype, lots) if kind in SCALED else _changed(kind, wide, buffer, lots)
    )
    return narrowed(changed, buffer.dtype)


def changed_scalar(value: float, whole: bool, variant: int, name: str) -> float:
    """Another value of a scalar that the job gives as a plain number; the same if this edge case has none.

    It follows from the variant alone, in which there is a lot: an integer may be a stride, so what the user's
    kernel does with it in one process must hold in all. One round leaves the integers as they are.
    """
    round_ = variant // len(KINDS) % ROUNDS
    lots = _lots(0, variant, name)
    if kind_of(variant) is not EdgeCase.SCALARS or (whole and round_ == 1):
        return value
    if whole:
        return value + int(lots.choice([1, -1, 2, value or 1]))
    return float(np.float32(lots.choice([value * 2, value * 3 + 1, 1.5 - value, lots.uniform(0.25, 4.0)])))


def _takes_part(kind: EdgeCase, variant: int, lots: np.random.Generator) -> bool:
    return variant // len(KINDS) % ROUNDS == 0 or kind in _SHARED or bool(lots.random() < _PART)


def _arranged(kind: EdgeCase, values: Array, buffer: BufferPlan) -> Array | None:
    """Values in another order or repeated; None if the kind does something else."""
    rows = values.reshape(-1, buffer.shape[-1])
    if kind is EdgeCase.RISING:
        return np.sort(rows, axis=1).reshape(-1)
    if kind is EdgeCase.FALLING:
        return np.ascontiguousarray(np.sort(rows, axis=1)[:, ::-1]).reshape(-1)
    if kind is EdgeCase.CONSTANT_ROWS:
        return np.repeat(rows[:, 0], rows.shape[1])
    if kind is EdgeCase.CONSTANT:
        return np.repeat(values[:1], values.size)
    if kind is EdgeCase.HALVES:
        half = max(1, rows.shape[1] // 2)
        return np.take(rows, np.arange(rows.shape[1]) % half, axis=1).reshape(-1)
    return None


def _scaled(kind: EdgeCase, wide: Floats, dtype: Dtype, lots: np.random.Generator) -> Floats:
    low, high = _EXPONENTS.get(kind, (0, 1))
    if kind is EdgeCase.BALANCED:
        low, high = ((-136, -127), (96, 104))[int(lots.integers(0, 2))]
    least, most = _limits(dtype)
    exponent = min(max(int(lots.integers(low, high)), least), most)
    return np.asarray(wide * 2.0**exponent, np.float64)


def _changed(kind: EdgeCase, wide: Floats, buffer: BufferPlan, lots: np.random.Generator) -> Floats:
    least, _ = _limits(buffer.dtype)
    match kind:
        case EdgeCase.ONE_TINY:
            wide = wide * 2.0 ** max(least, -20)
        case EdgeCase.WHOLE:
            wide = np.rint(wide * 4.0)
        case EdgeCase.NEGATIVE:
            wide = -np.abs(wide)
        case EdgeCase.POSITIVE:
            wide = np.abs(wide)
        case EdgeCase.FAR_BELOW:
            wide = wide - lots.uniform(110.0, 180.0)
        case EdgeCase.NEAR_TIES:
            wide = wide[0] + wide * 2.0**-8
        case EdgeCase.OPPOSITE:
            rows = wide.reshape(-1, buffer.shape[-1])
            wide = (rows * lots.choice([1.0, -1.0], (rows.shape[0], 1))).reshape(-1)
        case EdgeCase.NOT_A_NUMBER | EdgeCase.INFINITE:
            wide = np.copysign(np.maximum(np.abs(wide), _LEAST_SIZE), wide)
            if buffer.dtype.size_bytes > 1:
                places = lots.integers(0, wide.size, min(_SPECIALS, max(1, wide.size // 16)))
                wide[places] = np.nan if kind is EdgeCase.NOT_A_NUMBER else lots.choice([np.inf, -np.inf])
        case _:
            pass
    return np.asarray(wide, np.float64)


def _limits(dtype: Dtype) -> tuple[int, int]:
    """Least and largest exponent by which values of a type may be scaled."""
    if dtype.size_bytes == 1:
        return _SHORT.get(dtype, _SHORTEST)
    return _SHORT.get(dtype, (-136, 104))


def _lots(seed: int, variant: int, name: str = "") -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/world/{variant}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
