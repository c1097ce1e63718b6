"""Values of parameters whose configurations are rejected whatever the other parameters are."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

LEAST_REJECTED = 4
"""Number of rejections, without any success, before a value may be given up."""
CHANCE = 0.05
"""Limit on the probability that as many trials fail by what fails with the parameter's other values."""


def failing_values(codes: NDArray[np.int16], worked: Mapping[int, bool]) -> list[tuple[int, int]]:
    """(parameter, value) of those that always fail while other values of the parameter do not.

    The worst comes first, and what it explains does not count against other values: a value is not given up
    because it was tried beside one that always fails.

    Args:
        codes: [configurations, parameters], the number of the value of each parameter.
        worked: results by row; False: rejected.
    """
    tried = codes[sorted(worked)]
    good = np.array([worked[row] for row in sorted(worked)], bool)
    found: list[tuple[int, int]] = []
    while good.any() and (worst := _worst(tried, good)) is not None:
        found.append(worst)
        column, value = worst
        kept = tried[:, column] != value
        tried, good = tried[kept], good[kept]
    return found


def _worst(tried: NDArray[np.int16], good: NDArray[np.bool_]) -> tuple[int, int] | None:
    """The value with the most rejections among those that always fail."""
    found: list[tuple[int, int, int]] = []
    for column in range(tried.shape[1]):
        for value in np.unique(tried[~good, column]):
            with_it = tried[:, column] == value
            count, others = int(with_it.sum()), good[~with_it]
            if count < LEAST_REJECTED or good[with_it].any() or not others.any():
                continue
            if float(1.0 - others.mean()) ** count <= CHANCE:
                found.append((-count, column, int(value)))
    return min(found)[1:] if found else None
