"""Parts of a job as a program writes them, in the job form."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from warpsmith.domain.jobs.job import Budget, Tolerance, Workload
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint, Parameter
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.callable_expressions import FunctionReader

Fields = dict[str, Any]
"""A mapping in the job form."""
Extent = int | str
"""A number, or an expression over dimensions and parameters."""
Extents = Extent | Sequence[Extent] | Callable[..., Any]
"""Along x, y, z; one alone is along x. Or a function of the configuration."""
Workloads = Mapping[str, int] | Sequence[Mapping[str, Any] | Workload]
GivenTolerance = Tolerance | Mapping[str, float] | tuple[float, float]
"""With `rtol` and `atol`, or these two."""
Parameters = Mapping[str, Iterable[Any]] | Sequence[Parameter | Mapping[str, Any]]
GivenConstraint = str | Constraint | Mapping[str, Any] | Callable[..., Any]
Constraints = GivenConstraint | Sequence[GivenConstraint]


def workload_fields(workloads: Workloads | None, sizes: Mapping[str, int]) -> list[Fields]:
    """The workloads; where none is given, one with these sizes.

    Raises:
        InvalidInput: there is none, or a size is no whole number.
    """
    if workloads is None:
        if not sizes:
            words = "is missing, and no argument is a size; give the dimensions"
            raise InvalidInput("workloads", f'{words}, such as {{"n": 4096}}')
        return [{"dimensions": dict(sizes)}]
    listed = [workloads] if isinstance(workloads, Mapping) else list(workloads)
    made = [
        plain(w) if isinstance(w, Workload) or "dimensions" in w else {"dimensions": dict(w)} for w in listed
    ]
    if not made:
        raise InvalidInput("workloads", 'is empty; give the dimensions, such as {"n": 4096}')
    for n, workload in enumerate(made):
        own = workload["dimensions"]
        wrong = [k for k, v in own.items() if not hasattr(v, "__index__") or isinstance(v, bool)]
        if wrong:
            raise InvalidInput(f"workloads.{n}.{wrong[0]}", f"{own[wrong[0]]!r} is no whole number")
        workload["dimensions"] = {name: int(size) for name, size in own.items()}
    return made


def launch_fields(
    grid: Extents | None,
    block: Extents | None,
    launch: Launch | Mapping[str, Any] | None,
    functions: FunctionReader,
) -> Fields:
    """The launch, of grid and block or as a whole.

    Raises:
        InvalidInput: both are given, one is missing, or a function cannot be an expression.
    """
    if launch is not None:
        if grid is not None or block is not None:
            raise InvalidInput("launch", "give it, or grid and block")
        return plain(launch)
    made: Fields = {}
    for name, extents in (("grid", grid), ("block", block)):
        if extents is None:
            what = "blocks (work-groups)" if name == "grid" else "threads (work-items) of a block"
            such = '["ceil_div(n, 64)"]' if name == "grid" else "[64]"
            raise InvalidInput(name, f"is missing: {what} along x, y, z, such as {such}")
        listed = [extents] if isinstance(extents, str) or not isinstance(extents, Iterable) else extents
        made[name] = []
        for one in listed:
            made[name] += functions.expressions(name, one) if callable(one) else [_plain_number(one)]
    return made


def tolerance_fields(name: str, given: GivenTolerance) -> Fields:
    """The tolerance of one output.

    Raises:
        InvalidInput: a tuple is no pair.
    """
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidInput(f"tolerances.{name}", "give two numbers: (rtol, atol)")
        return {"rtol": given[0], "atol": given[1]}
    return plain(given)


def parameter_fields(given: Parameters) -> list[Fields]:
    """The tunables; of those with values only, the first is the default.

    Raises:
        InvalidInput: the values of one are no list.
    """
    if isinstance(given, Mapping):
        return [{"name": name, "values": _values(name, values)} for name, values in given.items()]
    return [plain(p) for p in given]


def _values(name: str, given: Iterable[Any]) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(f"parameters.{name}", f"{given!r} is no list of values; write [{given!r}]")
    return [_plain_number(value) for value in given]


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def constraint_fields(given: Constraints, functions: FunctionReader) -> list[Fields]:
    """The constraints; one alone needs no list.

    Raises:
        InvalidInput: one is neither an expression nor in the job form.
    """
    alone = isinstance(given, str | Constraint | Mapping) or not isinstance(given, Iterable)
    listed: Any = [given] if alone else given
    return [_constraint(f"constraints.{n}", c, functions) for n, c in enumerate(listed)]


def _constraint(field: str, given: Any, functions: FunctionReader) -> Fields:
    if isinstance(given, str):
        return {"expression": given}
    if isinstance(given, Constraint | Mapping):
        return plain(given)
    if callable(given):
        return {"expression": functions.expressions(field, given)[0]}
    words = f'this is {given!r}; write an expression as text, such as "BLOCK * TILE <= 1024"'
    raise InvalidInput(field, words)


def budget_fields(given: Budget | Mapping[str, Any] | None, **single: float | None) -> Fields:
    """The budget, with single limits in the place of its own."""
    return plain(given or {}) | {name: value for name, value in single.items() if value is not None}


def plain(value: BaseModel | Mapping[str, Any]) -> Fields:
    """A part of a job in the job form, from a value object or from a mapping, which is copied."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else dict(value)
