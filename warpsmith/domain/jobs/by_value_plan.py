"""Arguments by value, and addresses, as numbers for one workload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.arguments.field import Field, FieldRole, targets
from warpsmith.domain.arguments.layout import POINTER_BYTES, extent_of, placed
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.errors import ExpressionError

Scope = Mapping[str, Value]
Number = int | float


@dataclass(frozen=True)
class Address:
    """A place in a declared buffer."""

    to: str | None
    """Name of the buffer; None: the null pointer."""
    offset_bytes: int = 0


NULL = Address(None)
MAX_ADDRESSES = 1 << 16
"""Limit on the addresses of an array of them."""


@dataclass(frozen=True)
class NumberPart:
    """Numbers of one type at one place in a value."""

    path: tuple[str, ...]
    """Name of the field after the names of the structs around it; empty for a vector argument."""
    offset_bytes: int
    dtype: Dtype
    values: tuple[Number, ...]


@dataclass(frozen=True)
class ValuePlan:
    """A vector or struct that a kernel gets by value. Bytes between its members are zero."""

    name: str
    size_bytes: int
    align: int
    numbers: tuple[NumberPart, ...]
    addresses: tuple[tuple[int, Address], ...] = ()
    """Pointers by the byte at which they begin."""


@dataclass(frozen=True)
class PointerPlan:
    """An address that a kernel gets as an argument."""

    name: str
    address: Address


@dataclass(frozen=True)
class TablePlan:
    """An array of addresses in device memory."""

    name: str
    addresses: tuple[Address, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the addresses, without guard zones."""
        return POINTER_BYTES * len(self.addresses)


def value_plan(kernel: Kernel, argument: Argument, scope: Scope) -> ValuePlan:
    """A vector or struct of one workload.

    Raises:
        ExpressionError: a value cannot be evaluated, is beyond its type, or points outside of its buffer.
    """
    field = argument.as_field()
    extent = extent_of(field, kernel.backend)
    numbers: list[NumberPart] = []
    addresses: list[tuple[int, Address]] = []
    for part in placed([field], kernel.backend):
        fields = fields_along(field, part.path)
        if part.field.role is FieldRole.POINTER:
            for n, address in enumerate(addresses_of(kernel, part.field, scope)):
                addresses.append((part.offset_bytes + n * part.stride_bytes, address))
            continue
        path = tuple(f.name for f in fields[1:])
        numbers += _numbers(part.field, path, part.offset_bytes, part.stride_bytes, scope)
    return ValuePlan(argument.name, extent.size_bytes, extent.align, tuple(numbers), tuple(addresses))


def fields_along(field: Field, path: Sequence[int]) -> list[Field]:
    """The fields that a path of indices passes, `field` first."""
    found = [field]
    for index in path[1:]:
        found.append(found[-1].fields[index])
    return found


def _numbers(
    field: Field, path: tuple[str, ...], offset: int, stride: int, scope: Scope
) -> Iterator[NumberPart]:
    assert field.dtype is not None
    count = field.count or 1
    given = field.values or (field.value,) * count
    values = tuple(number(e, field.dtype, scope) for e in given if e is not None)
    lanes = field.lanes
    if stride == lanes * field.dtype.size_bytes:
        yield NumberPart(path, offset, field.dtype, values)
        return
    for n in range(count):
        yield NumberPart(path, offset + n * stride, field.dtype, values[n * lanes : (n + 1) * lanes])


def number(expression: Expression, dtype: Dtype, scope: Scope) -> Number:
    """The value of a number of a type.

    Raises:
        ExpressionError: it cannot be evaluated, or the type cannot hold it.
    """
    if dtype.is_float:
        value = expression.evaluate(scope)
        if isinstance(value, str):
            raise ExpressionError(expression.text, "gives a word, not a number")
        return float(value)
    whole = expression.integer(scope)
    low, high = whole_range(dtype)
    if not low <= whole <= high:
        raise ExpressionError(expression.text, f"is {whole}, which {dtype.value} cannot hold")
    return whole


def whole_range(dtype: Dtype) -> tuple[int, int]:
    """Smallest and largest number of an integer type, or of bool."""
    if dtype is Dtype.BOOL:
        return 0, 1
    bits = 8 * dtype.size_bytes
    return (0, 2**bits - 1) if dtype.value.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def pointer_plan(kernel: Kernel, argument: Argument, scope: Scope) -> PointerPlan:
    """An address of one workload. Raises `ExpressionError` as `value_plan` does."""
    return PointerPlan(argument.name, next(addresses_of(kernel, argument.as_field(), scope)))


def table_plan(kernel: Kernel, argument: Argument, scope: Scope) -> TablePlan:
    """An array of addresses of one workload. Raises `ExpressionError` as `value_plan` does."""
    return TablePlan(argument.name, tuple(addresses_of(kernel, table_field(argument, scope), scope)))


def table_field(argument: Argument, scope: Scope) -> Field:
    """An array of addresses as an array of pointers.

    Raises:
        ExpressionError: the number of addresses is not that of the buffers listed.
    """
    count = prod(extent.integer(scope) for extent in argument.shape)
    if not 0 <= count <= MAX_ADDRESSES:
        text = " * ".join(extent.text for extent in argument.shape)
        raise ExpressionError(text, f"is {count}; an array has at most {MAX_ADDRESSES} addresses")
    if isinstance(argument.to, tuple) and len(argument.to) != count:
        text = " * ".join(extent.text for extent in argument.shape)
        raise ExpressionError(text, f"is {count}, and {argument.name} lists {len(argument.to)} buffers")
    # Not validated: a table may have more addresses than a struct.
    field = Field(name=argument.name, role=FieldRole.POINTER, offset=argument.offset)
    return field.model_copy(update={"to": argument.to, "step": argument.step, "count": count})


def addresses_of(kernel: Kernel, field: Field, scope: Scope) -> Iterator[Address]:
    """The address of each element of a pointer field.

    Raises:
        ExpressionError: one lies outside of its buffer.
    """
    yield from _addresses(kernel, field, scope, enumerate(targets(field)))


def check_addresses(kernel: Kernel, field: Field, scope: Scope) -> None:
    """Check that every element of a pointer field points into its buffer.

    Raises:
        ExpressionError: as `addresses_of`.
    """
    named = list(enumerate(targets(field)))
    # Addresses into one buffer are equally far apart: if both ends lie in it, so do those between.
    ends = named if isinstance(field.to, tuple) else [named[0], named[-1]] if named else []
    for _ in _addresses(kernel, field, scope, ends):
        pass


def _addresses(
    kernel: Kernel, field: Field, scope: Scope, wanted: Iterable[tuple[int, str | None]]
) -> Iterator[Address]:
    offset, step = field.offset.integer(scope), field.step.integer(scope)
    sizes: dict[str, tuple[int, int]] = {}
    for n, name in wanted:
        if name is None:
            yield NULL
            continue
        if name not in sizes:
            sizes[name] = _extent(kernel, name, scope)
        elements, size = sizes[name]
        at = offset + n * step
        if not 0 <= at < elements:
            text = f"{field.offset.text} + {n} * ({field.step.text})" if n else field.offset.text
            raise ExpressionError(text, f"is {at}, and {name} has {elements} elements")
        yield Address(name, at * size)


def _extent(kernel: Kernel, name: str, scope: Scope) -> tuple[int, int]:
    """Elements of a declared buffer, and bytes of each."""
    target = next(a for a in kernel.declared if a.name == name)
    elements = prod(extent.integer(scope) for extent in target.shape)
    return elements, POINTER_BYTES if target.role is Role.POINTERS else target.dtype.size_bytes


def given_values(plan: ValuePlan) -> Mapping[str, object] | tuple[Number, ...]:
    """The numbers of a value as a reference gets them: by field, nested; those of a vector as a tuple.

    Of an array of structs it gets the first element, since all are alike.
    """
    found: dict[str, object] = {}
    collected: dict[tuple[str, ...], tuple[Number, ...]] = {}
    for part in plan.numbers:
        collected[part.path] = (*collected.get(part.path, ()), *part.values)
    for path, values in collected.items():
        if not path:
            return values
        inner = found
        for name in path[:-1]:
            nested = inner.setdefault(name, {})
            assert isinstance(nested, dict)
            inner = nested
        inner[path[-1]] = values[0] if len(values) == 1 else values
    return found


@dataclass(frozen=True)
class ParameterSlot:
    """The place of an argument in the buffer of a CUDA kernel's parameters."""

    name: str
    offset_bytes: int
    size_bytes: int


def parameters_of(kernel: Kernel) -> tuple[ParameterSlot, ...]:
    """The parameters that a CUDA kernel must have for the job's arguments to be right."""
    found, at = [], 0
    for argument in kernel.arguments:
        size, align = POINTER_BYTES, POINTER_BYTES
        if argument.role in (Role.SCALAR, Role.STRUCT):
            extent = extent_of(argument.as_field(), Backend.CUDA)
            size, align = extent.size_bytes, extent.align
        at += -at % align
        found.append(ParameterSlot(argument.name, at, size))
        at += size
    return tuple(found)
