"""Parameters, constraints, configurations."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import (
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.plain_data import STORED
from warpsmith.domain.reserved_words import reserved
from warpsmith.errors import ExpressionError

MacroWord = Annotated[StrictStr, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
ParameterValue = StrictBool | StrictInt | StrictFloat | MacroWord
"""A number or one identifier. It becomes the text of a macro, so nothing else is allowed."""

SHAPE_PREFIX = "WS_AT_"

Configuration = dict[str, ParameterValue]
"""An assignment of all parameters of a space, by name."""


class Parameter(Frozen):
    """A tunable: a macro of the template and the values it may take, in order."""

    name: Identifier
    values: tuple[ParameterValue, ...] = Field(min_length=1, max_length=1024)
    default: ParameterValue | None = None
    """Value that reproduces the baseline. None: the first value."""
    usual: ParameterValue | None = None
    """Value that one would write without measuring, and that is tried first. None: the default."""
    meaning: str = Field(default="", max_length=500)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        # True equals 1 in Python, but is a different value in a template.
        kinds = {(type(v), v) for v in self.values}
        if len(kinds) != len(self.values):
            raise ValueError(f"values of {self.name} repeat; list each once")
        if info.context is not STORED:
            self._check_new(kinds)
        for word, value in (("default", self.default), ("usual value", self.usual)):
            if value is not None and (type(value), value) not in kinds:
                raise ValueError(f"{word} {value!r} of {self.name} is not among its values")
        return self

    def _check_new(self, kinds: set[tuple[type, ParameterValue]]) -> None:
        if reserved(self.name):
            raise ValueError(f"name: {self.name!r} {reserved(self.name)}; choose another name")
        for _, value in kinds:
            alike = [v for v in self.values if v == value]
            if len(alike) > 1:
                raise ValueError(f"values: {alike[0]!r} equals {alike[1]!r}; list one of them")

    @property
    def baseline_value(self) -> ParameterValue:
        """The value of the user's own kernel."""
        return self.values[0] if self.default is None else self.default

    @property
    def first_value(self) -> ParameterValue:
        """The value to try first: the usual one, or that of the user's own kernel."""
        return self.baseline_value if self.usual is None else self.usual


class Constraint(Frozen):
    """A condition on configurations.

    A condition that names a dimension is evaluated per workload. A configuration belongs to the space if at
    least one workload allows it, and it runs only on the workloads that do.
    """

    expression: Expression
    reason: str = Field(default="", max_length=500)


class Space(Frozen):
    """All configurations that may be tried: the product of the parameters without those that break a
    constraint."""

    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [p.name for p in self.parameters]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"parameter {name} is declared twice")
        return self

    @property
    def defaults(self) -> Configuration:
        """The configuration that reproduces the baseline."""
        return {p.name: p.baseline_value for p in self.parameters}


def is_shape(name: str) -> bool:
    """True for a parameter that selects the workload of a configuration; the source does not have it."""
    return name.startswith(SHAPE_PREFIX)


def allows(constraints: tuple[Constraint, ...], scope: Mapping[str, Value]) -> Constraint | None:
    """The first constraint that `scope` breaks, or None."""
    return next((c for c in constraints if not c.expression.evaluate(scope)), None)


def holds(constraints: tuple[Constraint, ...], scope: Mapping[str, Value]) -> bool:
    """True if `scope` breaks no constraint; False if one of them cannot be evaluated."""
    try:
        return allows(constraints, scope) is None
    except ExpressionError:
        return False


def configuration_key(configuration: Mapping[str, ParameterValue]) -> str:
    """A short stable name of a configuration: 16 hex digits of SHA-256 over canonical JSON."""
    text = json.dumps(dict(configuration), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
