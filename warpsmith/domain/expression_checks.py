"""Checks, at submission, that the expressions of a job can be evaluated. Messages start with the field."""

from collections.abc import Collection, Mapping

from warpsmith.domain.device import DeviceLimits
from warpsmith.domain.expressions import Expression, Value
from warpsmith.errors import ExpressionError

DEVICE_NAMES = frozenset(f"device.{name}" for name in DeviceLimits.model_fields)


def check_names(where: str, expression: Expression, known: Collection[str]) -> None:
    """Check that every name in the expression is one of `known` or a limit of the device.

    Raises:
        ValueError: a name is unknown; the message names the field `where`.
    """
    unknown = sorted(expression.names - DEVICE_NAMES - set(known))
    if unknown:
        may = ", ".join(sorted(known)) or "none"
        raise ValueError(
            f"{where}: in expression {expression.text!r}: unknown name {unknown[0]!r} "
            f"(known: {may}, and limits of the device such as device.warp_size)"
        )


def check_number(where: str, expression: Expression, scope: Mapping[str, Value], workload: int) -> None:
    """Check that the value is a number. An expression that names the device is skipped if no device is known.

    Raises:
        ValueError: it is not a number; the message names the field `where`.
    """
    check_names(where, expression, scope)
    if expression.names & DEVICE_NAMES:
        return
    try:
        value = expression.evaluate(scope)
    except ExpressionError as exc:
        raise ValueError(f"{where}: {exc.message} (workload {workload})") from exc
    if isinstance(value, str):
        raise ValueError(f"{where}: {expression.text!r} gives a word, not a number")


def check_whole(
    where: str, expression: Expression, scope: Mapping[str, Value], workload: int, lowest: int | None = None
) -> None:
    """Check that the value is a whole number of at least `lowest`.

    Raises:
        ValueError: it is not; the message names the field `where`.
    """
    check_number(where, expression, scope, workload)
    if expression.names & DEVICE_NAMES:
        return
    try:
        value = expression.integer(scope)
    except ExpressionError as exc:
        raise ValueError(f"{where}: {exc.message} (workload {workload})") from exc
    if lowest is not None and value < lowest:
        raise ValueError(f"{where}: {expression.text!r} is {value}, below {lowest} (workload {workload})")
