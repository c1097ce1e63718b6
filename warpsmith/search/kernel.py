"""The covariance of two configurations, from tables over pairs of values of each parameter.

An ordered parameter contributes how far apart its values lie, by rank and by logarithm, and whether
they differ at all; a parameter of words contributes the latter only; a quantity that the constraints
speak of contributes how far apart it is. Each contribution has a weight of
its own (an inverse squared length scale); Matérn-5/2 over the weighted sum.
"""

import math

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.space import Parameter
from warpsmith.search.feasible import FeasibleSet
from warpsmith.search.features import constraint_features

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]

SQRT5 = math.sqrt(5.0)


class Tables:
    """Squared distances of every pair of values, one table per contribution."""

    def __init__(self, feasible: FeasibleSet) -> None:
        self.columns: list[int] = []
        self.tables: list[Floats] = []
        for column, parameter in enumerate(feasible.space.parameters):
            count = len(parameter.values)
            if count < 2:
                continue
            if count > 2 and _ordered(parameter):
                self.columns.append(column)
                self.tables.append(_ordinal(parameter))
            self.columns.append(column)
            self.tables.append(1.0 - np.eye(count))
        features = constraint_features(feasible)
        self.codes: Codes = np.column_stack([feasible.codes, *(codes for codes, _ in features)])
        """[rows, columns]: the set's codes, and one column more for each derived quantity."""
        for column, (_, levels) in enumerate(features, start=feasible.codes.shape[1]):
            self.columns.append(column)
            self.tables.append((levels[:, None] - levels[None, :]) ** 2)

    def __len__(self) -> int:
        return len(self.tables)

    def gather(self, rows: Codes, others: Codes) -> list[Floats]:
        """Per contribution: squared distances of every row to every other, [rows, others]."""
        return [
            table[rows[:, column][:, None], others[:, column][None, :]]
            for column, table in zip(self.columns, self.tables, strict=True)
        ]

    def distance(self, weights: Floats, row: Codes, others: Codes) -> Floats:
        """Weighted squared distance of one row to many."""
        total = np.zeros(others.shape[0])
        for weight, column, table in zip(weights, self.columns, self.tables, strict=True):
            total += (weight * table[row[column]])[others[:, column]]
        return total


def matern(squared: Floats) -> Floats:
    """Matérn-5/2 of a squared distance."""
    r = np.sqrt(squared)
    result: Floats = (1.0 + SQRT5 * r + (5.0 / 3.0) * squared) * np.exp(-SQRT5 * r)
    return result


def matern_slope(squared: Floats) -> Floats:
    """Derivative of `matern` by the squared distance."""
    r = np.sqrt(squared)
    result: Floats = -(5.0 / 6.0) * (1.0 + SQRT5 * r) * np.exp(-SQRT5 * r)
    return result


def _ordered(parameter: Parameter) -> bool:
    return all(not isinstance(v, str | bool) for v in parameter.values)


def _ordinal(parameter: Parameter) -> Floats:
    values = np.array([float(v) for v in parameter.values])
    rank = np.argsort(np.argsort(values)) / (values.size - 1)
    logs = np.log2(np.abs(values) + 1.0) * np.sign(values)
    spread = np.ptp(logs)
    logs = (logs - logs.min()) / spread if spread else rank
    result: Floats = 0.5 * (rank[:, None] - rank[None, :]) ** 2 + 0.5 * (logs[:, None] - logs[None, :]) ** 2
    return result
