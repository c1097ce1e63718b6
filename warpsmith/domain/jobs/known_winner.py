"""Configurations that won elsewhere, as a hint for a search over shapes."""

from pydantic import Field

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.templates.space import Configuration


class KnownWinner(Frozen):
    """The best configuration of a shape of another kernel like this one, such as a row of an engine's table.

    A parameter that is left out is not told of.
    """

    dimensions: dict[Identifier, int] = Field(min_length=1, max_length=8)
    """The shape, as far as it counts: dimensions that differ between the job's workloads."""
    configuration: Configuration = Field(min_length=1, max_length=32)
    weight: float = Field(default=1.0, gt=0, le=1e6)
    """How much it counts beside the others."""
