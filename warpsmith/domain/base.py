"""The base class of every value object."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints


class Frozen(BaseModel):
    """A value object: immutable, and an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


Identifier = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", min_length=1, max_length=64, strip_whitespace=True
    ),
]


@dataclass(frozen=True)
class Fenced:
    """Mark of a field of an answer that may stand in a fenced block of Markdown beside the JSON.

    Args:
        unless: fields that take its place.
    """

    unless: tuple[str, ...] = ()
