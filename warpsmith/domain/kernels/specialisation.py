"""Facts of a launch that Triton's just-in-time compiler gets besides the source.

An engine's launch compiles for the values that it passes: a `tl.constexpr` is its value, an integer that
equals 1 is a constant, and pointers and integers that are multiples of 16 are marked so. A build that leaves
this out is another kernel than the one that the engine runs.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.base import Frozen
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernels.triton_function import kernel_named
from warpsmith.errors import ExpressionError

ALIGNED = 16
"""Bytes of a pointer, or units of an integer, of which multiples are marked."""
_TYPE = re.compile(r"(?:tl|triton\.language)\.([a-z][a-z0-9]{1,15})")
_TYPES = {
    Dtype.FLOAT16: "fp16",
    Dtype.BFLOAT16: "bf16",
    Dtype.FLOAT32: "fp32",
    Dtype.FLOAT64: "fp64",
    Dtype.INT8: "i8",
    Dtype.INT16: "i16",
    Dtype.INT32: "i32",
    Dtype.INT64: "i64",
    Dtype.UINT8: "u8",
    Dtype.UINT16: "u16",
    Dtype.UINT32: "u32",
    Dtype.UINT64: "u64",
    Dtype.FLOAT8_E4M3FN: "fp8e4nv",
    Dtype.FLOAT8_E4M3FNUZ: "fp8e4b8",
    Dtype.FLOAT8_E5M2: "fp8e5",
    Dtype.FLOAT8_E5M2FNUZ: "fp8e5b16",
}
"""Names that Triton's signatures have for element types."""


def _known_constexpr(value: object) -> object:
    """Refuse a text that is neither an expression nor a type of `triton.language`."""
    if isinstance(value, str) and not _TYPE.fullmatch(value.strip()):
        try:
            Expression(value)
        except ExpressionError as exc:
            words = (
                "is an expression such as `next_pow2(n)`, a text in quotes, or a type such as `tl.float16`"
            )
            raise ValueError(f"{exc.message}; a constexpr {words}") from exc
    return value


Constexpr = Annotated[
    StrictBool | StrictInt | StrictFloat | Annotated[str, Field(max_length=500)] | None,
    BeforeValidator(_known_constexpr),
]
"""Value of a `tl.constexpr`: a number, true, false or null; an expression over dimensions and parameters; a
text in quotes of its own; or a type (`tl.float16`)."""

Constant = bool | int | float | str | None | dict[str, str]
"""A value for the compiler; `{"type": "float16"}` is a type of `triton.language`."""


class Specialisation(Frozen):
    """A variant of a Triton kernel: all launches of the same class run it."""

    types: dict[str, str]
    """Types of the arguments that are passed at launch, by name, such as `*fp16` and `i32`."""
    constants: dict[str, Constant]
    """Values of `tl.constexpr`s, of arguments that became constants, and launch options."""
    divisible: tuple[str, ...] = ()
    """Arguments that are multiples of `ALIGNED`."""

    @property
    def key(self) -> str:
        """Short stable name: 16 hex digits of SHA-256."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_expression(value: Constexpr) -> bool:
    """True for a constexpr that is a number, or an expression for one."""
    if not isinstance(value, str):
        return value is not None
    return not _TYPE.fullmatch(value.strip()) and value.strip()[:1] not in "'\""


def type_name(dtype: Dtype) -> str | None:
    """Name of an element type in Triton's signatures; None if Triton has none of it."""
    return _TYPES.get(dtype)


def constant_of(value: Constexpr, scope: Mapping[str, Value]) -> Constant:
    """A constexpr of a job in numbers.

    Raises:
        ExpressionError: it cannot be evaluated.
    """
    if not isinstance(value, str):
        return value
    named = _TYPE.fullmatch(value.strip())
    return {"type": named[1]} if named else Expression(value).evaluate(scope)


def specialisation_of(
    text: str,
    entry: str,
    arguments: tuple[Argument, ...],
    constexprs: Mapping[str, Constexpr],
    configuration: Mapping[str, Value],
    scope: Mapping[str, Value],
) -> Specialisation:
    """The variant that a launch with these values runs.

    Args:
        configuration: parameters with their values; each is a `tl.constexpr` or a launch option.
        scope: names for the expressions of arguments and constexprs.

    Raises:
        ExpressionError: a value cannot be evaluated.
    """
    try:
        function = kernel_named(text, entry)
    except ValueError:  # the compiler says what is wrong with the text
        function = None
    types: dict[str, str] = {}
    divisible: list[str] = []
    constants: dict[str, Constant] = {n: constant_of(v, scope) for n, v in constexprs.items()}
    constants |= configuration
    for argument in arguments:
        if argument.role is Role.POINTER and argument.to is None:
            constants[argument.name] = None
            continue
        is_pointer = argument.role is not Role.SCALAR
        types[argument.name] = f"{'*' * is_pointer}{type_name(argument.dtype)}"
        units = _units(argument, scope)
        if units is None or (function is not None and argument.name in function.not_specialised):
            continue
        if not is_pointer and units == 1:
            del types[argument.name]
            constants[argument.name] = 1
        elif units % ALIGNED == 0 and not (function is not None and argument.name in function.not_aligned):
            divisible.append(argument.name)
    return Specialisation(types=types, constants=constants, divisible=tuple(divisible))


def _units(argument: Argument, scope: Mapping[str, Value]) -> int | None:
    """Number whose divisibility Triton uses: an integer's value, or the bytes of a pointer's offset; None for
    other scalars."""
    if argument.role is Role.POINTER:
        return argument.offset.integer(scope) * argument.dtype.size_bytes
    if argument.role is not Role.SCALAR:
        return 0
    if argument.dtype.is_float or argument.value is None:
        return None
    return argument.value.integer(scope)
