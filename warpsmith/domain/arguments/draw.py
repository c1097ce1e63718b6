"""Distributions from which the values of inputs are drawn, and their parameters."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from warpsmith.domain.arguments.npy import NpyFile, parse_npy
from warpsmith.domain.base import Frozen
from warpsmith.domain.expressions import Expression, Value

MAX_FILE_BYTES = 128 * 1024
"""Limit on the bytes of a file of values, so that several fit into a request."""


class Distribution(StrEnum):
    """Distributions from which the elements of an input are drawn."""

    NORMAL = "normal"
    UNIFORM = "uniform"
    INTEGERS = "integers"
    CONSTANT = "constant"
    MASK = "mask"
    PERMUTATION = "permutation"
    DISTINCT = "distinct"
    OFFSETS = "offsets"
    ROUTING = "routing"
    FILE = "file"


ARRANGED = (Distribution.PERMUTATION, Distribution.DISTINCT, Distribution.OFFSETS, Distribution.ROUTING)
"""Distributions that promise something of all elements together."""

Bound = Annotated[float | Expression, Field(union_mode="left_to_right")]
"""A number, or an expression over dimensions."""


class Routing(Frozen):
    """Routing of tokens to experts, as `moe_align_block_size` of vLLM and SGLang gives it.

    Row r is choice r % chosen of token r // chosen. Rows are sorted by expert, and each expert's are padded
    to whole blocks with the number of rows.
    """

    part: Literal["rows", "experts", "count"]
    """The sorted and padded rows; the expert of each block; how many of the rows count."""
    experts: int = Field(ge=1, le=1 << 16)
    chosen: int = Field(ge=1, le=1 << 10)
    """Experts of a token, none twice."""
    block: int = Field(ge=1, le=1 << 16)
    """Rows of a block."""
    skew: float = Field(default=0.0, ge=0, le=4)
    """The n-th expert is chosen like 1 / n ** skew; 0: all alike."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.chosen > self.experts:
            raise ValueError(f"chosen: a token cannot have {self.chosen} of {self.experts} experts")
        return self


class Draw(Frozen):
    """Distribution of an input.

    `normal` uses mean and std. `uniform`, `integers` and `constant` use low and high (high excluded). `mask`
    is 1 for a share of the elements, and else 0. `permutation` has every integer from low on once; `distinct`
    has integers from low to high (excluded), none twice. `offsets` begins with low, never decreases, and ends
    with high. `routing` has rows of `high` tokens, sorted by expert. `file` has the values of a NumPy file.
    """

    distribution: Distribution = Distribution.NORMAL
    mean: float = 0.0
    std: float = Field(default=1.0, ge=0)
    low: Bound = -1.0
    """A number or an expression. Default of `permutation`, `distinct` and `offsets`: 0."""
    high: Bound = 1.0
    share: float = Field(default=0.5, ge=0, le=1)
    """Share of ones in a mask."""
    least: Bound = 0.0
    """Offsets: the least difference between one and the next."""
    per_row: bool = False
    """Permutation, distinct and offsets: every row (the last extent of the shape) has one of its own."""
    routing: Routing | None = None
    file: str | None = Field(default=None, max_length=500)
    """A `.npy` file. In a job file: its path, relative to the job file; the client sends it as `data`."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Hash of the file, in hexadecimal digits. It is checked if it is given; the client fills it in."""
    data: str | None = Field(default=None, max_length=4 * (MAX_FILE_BYTES // 3 + 1))
    """The `.npy` file in base64."""

    @model_validator(mode="before")
    @classmethod
    def _begin_at_zero(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("distribution") in ARRANGED and "low" not in data:
            return {**data, "low": 0}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_file = self.distribution is Distribution.FILE
        if is_file and self.file is None and self.data is None:
            raise ValueError("file: name a .npy file")
        if not is_file and (self.file or self.data or self.sha256):
            raise ValueError(f"file: {self.distribution.value} reads no file; use distribution file")
        if self.per_row and self.distribution not in ARRANGED[:3]:
            raise ValueError("per_row: only for permutation, distinct and offsets")
        if (self.routing is None) == (self.distribution is Distribution.ROUTING):
            raise ValueError("routing: belongs to distribution routing, which needs it")
        if self.data is not None:
            self._check_data()
        return self

    def _check_data(self) -> None:
        try:
            content = self.content
        except (binascii.Error, ValueError) as exc:
            raise ValueError(f"data: is not base64: {exc}") from exc
        if self.sha256 is not None and hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("sha256: the file has another hash")
        try:
            _ = self.npy
        except ValueError as exc:
            raise ValueError(f"data: {exc}") from exc

    @cached_property
    def content(self) -> bytes:
        """Bytes of the file."""
        return base64.b64decode(self.data or "", validate=True)

    @cached_property
    def npy(self) -> NpyFile:
        """The file's elements. Raises `ValueError` if it holds none that could be read."""
        return parse_npy(self.content)

    @property
    def range(self) -> tuple[float, float]:
        """`low` and `high`, once they are numbers; see `resolved`."""
        return number_of(self.low), number_of(self.high)

    def resolved(self, scope: Mapping[str, Value]) -> "Draw":
        """The draw with numbers for expressions.

        Raises:
            ExpressionError: one cannot be evaluated.
        """
        bounds = {"low": self.low, "high": self.high, "least": self.least}
        found = {n: float(e.evaluate(scope)) for n, e in bounds.items() if isinstance(e, Expression)}
        return self.model_copy(update=found) if found else self


def number_of(bound: float | Expression) -> float:
    """A bound of a resolved draw."""
    assert not isinstance(bound, Expression)
    return bound
