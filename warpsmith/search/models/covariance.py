"""The covariance of two configurations, from tables over pairs of values of each parameter.

An ordered parameter contributes the distance of its values, by rank and by logarithm, and whether they
differ. A categorical parameter contributes only whether its values differ. A quantity in the constraints or
the launch contributes its distance. Whole numbers also contribute their odd part and their power of two: 96
and 112 threads may be as unlike 128 as they are alike. Each contribution has a weight of its own (an inverse
squared length scale). The covariance is Matérn-5/2 of the weighted sum.
"""

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.templates.space import Parameter
from warpsmith.search.models.features import derived_features
from warpsmith.search.spaces.feasible_set import FeasibleSet
from warpsmith.search.spaces.launch_prior import SizedLaunch

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]

SQRT5 = math.sqrt(5.0)


class Kind(StrEnum):
    """Kinds of contributions."""

    ORDER = "order"
    NUMBER = "number"
    DIFFERS = "differs"
    """Difference of an ordered parameter's values."""
    CHOICE = "choice"
    """Difference of two values, or of words."""
    DERIVED = "derived"


Prior = Mapping[Kind, tuple[float, float]]
"""Mean and deviation of the logarithm of a weight."""
PRIOR: Prior = {
    Kind.ORDER: (-1.0, 2.0),
    Kind.NUMBER: (-2.5, 1.6),
    Kind.DIFFERS: (-3.6, 1.2),
    Kind.CHOICE: (-3.8, 2.9),
    Kind.DERIVED: (-1.6, 1.4),
}
"""Priors of the weights, fitted to recorded kernels (`benchmarks.search.prior`)."""


class Tables:
    """Squared distances of every pair of values, one table per contribution."""

    def __init__(self, feasible: FeasibleSet, launched: SizedLaunch | None = None) -> None:
        self.columns: list[int] = []
        self.tables: list[Floats] = []
        self.kinds: list[Kind] = []
        for column, parameter in enumerate(feasible.space.parameters):
            if len(parameter.values) < 2:
                continue
            for kind, table in _contributions(parameter):
                self._add(column, kind, table)
        features = derived_features(feasible, launched)
        self.codes: Codes = np.column_stack([feasible.codes, *(codes for codes, _ in features)])
        """[rows, columns]: the set's codes, and one further column per derived quantity."""
        for column, (_, levels) in enumerate(features, start=feasible.codes.shape[1]):
            self._add(column, Kind.DERIVED, _apart(levels))

    def _add(self, column: int, kind: Kind, table: Floats) -> None:
        self.columns.append(column)
        self.kinds.append(kind)
        self.tables.append(table)

    def __len__(self) -> int:
        return len(self.tables)

    def gather(self, rows: Codes, others: Codes) -> list[Floats]:
        """Per contribution: squared distances of every row to every other, [rows, others]."""
        return [
            table[rows[:, column][:, None], others[:, column][None, :]]
            for column, table in zip(self.columns, self.tables, strict=True)
        ]

    def distances(self, weights: Floats, rows: Codes) -> NDArray[np.float32]:
        """Weighted squared distances of some rows to the whole set, [rows, set]."""
        # One look-up per column: the look-ups over the set dominate the cost.
        by_column: dict[int, Floats] = {}
        for weight, column, table in zip(weights, self.columns, self.tables, strict=True):
            by_column[column] = by_column.get(column, 0.0) + weight * table
        total = np.zeros((rows.shape[0], self.codes.shape[0]), np.float32)
        for column, table in by_column.items():
            total += np.take(table.astype(np.float32)[rows[:, column]], self.codes[:, column], axis=1)
        return total


def matern(squared: Floats) -> Floats:
    """Matérn-5/2 of a squared distance."""
    r = np.sqrt(squared)
    result: Floats = (1.0 + SQRT5 * r + (5.0 / 3.0) * squared) * np.exp(-SQRT5 * r)
    return result


def matern_in_place(squared: NDArray[np.float32]) -> None:
    """`matern` in place, for a `squared` too large to copy."""
    root = np.sqrt(squared)
    root *= -SQRT5
    squared *= 5.0 / 3.0
    squared += 1.0
    squared -= root
    np.exp(root, out=root)
    squared *= root


def matern_slope(squared: Floats) -> Floats:
    """Derivative of `matern` with respect to the squared distance."""
    r = np.sqrt(squared)
    result: Floats = -(5.0 / 6.0) * (1.0 + SQRT5 * r) * np.exp(-SQRT5 * r)
    return result


def _contributions(parameter: Parameter) -> Iterator[tuple[Kind, Floats]]:
    count = len(parameter.values)
    ordered = count > 2 and all(not isinstance(v, str | bool) for v in parameter.values)
    if ordered:
        values = np.array([float(v) for v in parameter.values])
        rank = np.argsort(np.argsort(values)) / (count - 1)
        logs = np.log2(np.abs(values) + 1.0) * np.sign(values)
        logs = (logs - logs.min()) / np.ptp(logs) if np.ptp(logs) else rank
        yield Kind.ORDER, 0.5 * _apart(rank) + 0.5 * _apart(logs)
        for part in _number_parts(values):
            yield Kind.NUMBER, _apart(part)
    yield (Kind.DIFFERS if ordered else Kind.CHOICE), 1.0 - np.eye(count)


def _number_parts(values: Floats) -> Iterator[Floats]:
    """Odd part and power of two, scaled to 0..1; nothing if all values are powers of two, or not whole."""
    if np.any(values < 1) or np.any(values % 1) or np.any(values >= 2**31):
        return
    whole = values.astype(np.int64)
    twos = np.log2(whole & -whole)
    odd = np.log2(whole) - twos
    if np.ptp(odd):
        yield odd / np.ptp(odd)
        if np.ptp(twos):
            yield twos / np.ptp(twos)


def _apart(values: Floats) -> Floats:
    result: Floats = (values[:, None] - values[None, :]) ** 2
    return result
