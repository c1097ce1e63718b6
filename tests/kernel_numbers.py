"""Numbers and pointers of C, as `kernel_interpreter` computes with them; floats are doubles."""

from typing import NamedTuple

from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.reader.declarations.type_words import element_type

_OF_32_BITS = 32
_OF_64_BITS = 64


class Number(NamedTuple):
    """A value with its type."""

    dtype: Dtype
    value: int | float


class Place(NamedTuple):
    """A pointer into an array; the offset, in elements, may lie outside."""

    array: str
    dtype: Dtype
    offset: int


class UndefinedError(Exception):
    """The kernel does what the language leaves undefined."""


def number_type(words: str) -> Dtype:
    """The type of numbers that a declaration or a cast names, without stars."""
    kept = " ".join(w for w in words.replace("*", " ").split() if w not in ("const", "__global", "__local"))
    dtype, lanes = element_type(kept, {})
    assert dtype is not None and lanes == 1, words
    return dtype


def literal(text: str) -> Number:
    """A number as it is written, with its suffix."""
    low = text.lower()
    if "." in low or "e" in low:
        return Number(Dtype.FLOAT32 if low.endswith("f") else Dtype.FLOAT64, float(low.rstrip("f")))
    bits = _OF_64_BITS if "l" in low else _OF_32_BITS
    return Number(Dtype(f"{'uint' if 'u' in low else 'int'}{bits}"), int(low.rstrip("ul")))


def converted(number: Number, dtype: Dtype) -> Number:
    """The number in another type; of integers the low bits are kept."""
    if dtype.is_float:
        return Number(dtype, float(number.value))
    return Number(dtype, _low_bits(int(number.value), dtype))


def is_true(value: Number | Place) -> bool:
    """What a condition makes of a number."""
    assert isinstance(value, Number), value
    return value.value != 0


def of_two(sign: str, left: Number | Place, right: Number | Place) -> Number | Place:
    """The value of a binary operator.

    Raises:
        UndefinedError: a signed number overflows, or something is divided by 0.
    """
    if isinstance(left, Place) or isinstance(right, Place):
        return _moved(sign, left, right)
    dtype = _common(left.dtype, right.dtype)
    if sign in ("<<", ">>"):
        dtype = _promoted(left.dtype)
        return Number(dtype, _checked(_shifted(sign, left, right), dtype))
    a, b = converted(left, dtype).value, converted(right, dtype).value
    if sign in _COMPARED:
        return Number(Dtype.INT32, int(_COMPARED[sign](a, b)))
    if sign in _COMPUTED:
        return Number(dtype, _checked(_COMPUTED[sign](a, b), dtype))
    if b == 0:
        raise UndefinedError(f"{a} {sign} 0")
    if dtype.is_float:
        return Number(dtype, a / b)
    whole = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
    return Number(dtype, _checked(whole if sign == "/" else a - whole * b, dtype))


_COMPARED = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_COMPUTED = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def _moved(sign: str, left: Number | Place, right: Number | Place) -> Place:
    """A pointer and an integer; a sum that wraps in 64 bits is the pointer's, as on the devices."""
    if isinstance(left, Number):
        left, right = right, left
    assert isinstance(left, Place) and isinstance(right, Number) and sign in ("+", "-"), (left, sign, right)
    by = int(right.value) if sign == "+" else -int(right.value)
    return left._replace(offset=_low_bits(left.offset + by, Dtype.INT64))


def _shifted(sign: str, left: Number, right: Number) -> int:
    return int(left.value) << int(right.value) if sign == "<<" else int(left.value) >> int(right.value)


def _bits(dtype: Dtype) -> int:
    return 8 * dtype.size_bytes


def _is_signed(dtype: Dtype) -> bool:
    return dtype.value.startswith("int")


def _low_bits(value: int, dtype: Dtype) -> int:
    bits = _bits(dtype)
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if _is_signed(dtype) and low >> (bits - 1) else low


def _checked(value: int | float, dtype: Dtype) -> int | float:
    """The value as the type holds it: unsigned numbers wrap, signed ones must not."""
    if dtype.is_float:
        return value
    low = _low_bits(int(value), dtype)
    if _is_signed(dtype) and low != value:
        raise UndefinedError(f"{value} is no {dtype.value}")
    return low


def _promoted(dtype: Dtype) -> Dtype:
    return dtype if dtype.is_float or _bits(dtype) >= _OF_32_BITS else Dtype.INT32


def _common(left: Dtype, right: Dtype) -> Dtype:
    """The type in which two numbers are computed."""
    floats = [d for d in (left, right) if d.is_float]
    if floats:
        return max(floats, key=_bits)
    # Of two equally wide ones the unsigned one.
    return max(_promoted(left), _promoted(right), key=lambda d: (_bits(d), not _is_signed(d)))
