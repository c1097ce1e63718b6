"""Checks, at submission, of the values and addresses that arguments hold. Messages start with the field."""

from collections.abc import Iterator, Mapping

from warpsmith.domain.arguments.argument import BY_VALUE, Argument, Role
from warpsmith.domain.arguments.field import Field, FieldRole, targets
from warpsmith.domain.expression_checks import DEVICE_NAMES, check_number, check_whole
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.by_value_plan import check_addresses, table_field, whole_range
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.errors import ExpressionError

Scope = Mapping[str, Value]


def check_values(kernel: Kernel, argument: Argument, where: str, scope: Scope, workload: int) -> None:
    """Check that every value can be evaluated and fits its type, and that every address lies in its buffer.

    What names the device is skipped if no device is known. Whether a lone number fits is found with the
    baseline, because rows of older jobs must still load.

    Raises:
        ValueError: it does not; the message names the field, which begins with `where`.
    """
    if argument.role is Role.POINTERS:
        _check_table(kernel, argument, where, scope, workload)
    elif argument.role is Role.SYMBOL and argument.value is not None:
        check = check_number if argument.dtype.is_float else check_whole
        check(f"{where}.value", argument.value, scope, workload)
    elif argument.role in BY_VALUE:
        for place, field in _leaves(argument.as_field(), where):
            if field.role is FieldRole.POINTER:
                _check_pointer(kernel, field, place, scope, workload)
            else:
                is_lone = argument.role is Role.SCALAR and not argument.values
                _check_numbers(field, place, scope, workload, is_lone=is_lone)


def _leaves(field: Field, where: str) -> Iterator[tuple[str, Field]]:
    if field.role is not FieldRole.STRUCT:
        yield where, field
    for n, inner in enumerate(field.fields):
        yield from _leaves(inner, f"{where}.fields.{n}")


def _check_numbers(field: Field, where: str, scope: Scope, workload: int, *, is_lone: bool) -> None:
    assert field.dtype is not None
    listed = {f"{where}.values.{n}": e for n, e in enumerate(field.values)}
    if field.value is not None:
        listed[f"{where}.value"] = field.value
    for place, expression in listed.items():
        if field.dtype.is_float:
            check_number(place, expression, scope, workload)
            continue
        check_whole(place, expression, scope, workload)
        if expression.names & DEVICE_NAMES or is_lone:
            continue
        whole, (low, high) = expression.integer(scope), whole_range(field.dtype)
        if not low <= whole <= high:
            words = f"{expression.text!r} is {whole}, which {field.dtype.value} cannot hold"
            raise ValueError(f"{place}: {words} (workload {workload})")


def _check_table(kernel: Kernel, argument: Argument, where: str, scope: Scope, workload: int) -> None:
    if any(extent.names & DEVICE_NAMES for extent in argument.shape):
        return
    try:
        field = table_field(argument, scope)
    except ExpressionError as exc:
        raise ValueError(f"{where}.to: {exc.message} (workload {workload})") from exc
    _check_pointer(kernel, field, where, scope, workload)


def _check_pointer(kernel: Kernel, field: Field, where: str, scope: Scope, workload: int) -> None:
    for name, expression in (("offset", field.offset), ("step", field.step)):
        check_whole(f"{where}.{name}", expression, scope, workload)
    if any(e.names & DEVICE_NAMES for e in _used(kernel, field)):
        return
    try:
        check_addresses(kernel, field, scope)
    except ExpressionError as exc:
        raise ValueError(f"{where}.offset: {exc.message} (workload {workload})") from exc


def _used(kernel: Kernel, field: Field) -> Iterator[Expression]:
    yield field.offset
    yield field.step
    names = set(targets(field))
    yield from (extent for a in kernel.declared if a.name in names for extent in a.shape)
