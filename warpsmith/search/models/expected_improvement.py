"""Expected improvement over the best of a normally distributed value."""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = TypeVar("Numbers", float, NDArray[np.float64])


def expected_improvement(best: float | NDArray[np.float64], mean: Numbers, deviation: Numbers) -> Numbers:
    """Expected value of max(0, best - x) for x normal with this mean and standard deviation.

    A deviation of 0 means that x is known. All arguments have the same unit, which is that of the result.
    """
    gain = best - mean
    spread = np.where(deviation > 0, deviation, 1.0)
    with np.errstate(over="ignore"):
        z = gain / spread
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        uncertain = spread * (z * _normal_cdf(z) + density)
    found = np.maximum(np.where(deviation > 0, uncertain, gain), 0.0)
    return found if isinstance(mean, np.ndarray) else float(found)


def _normal_cdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z <= z) of a standard normal variable Z, for each element."""
    flat = [0.5 * math.erfc(x) for x in np.ravel(z / -math.sqrt(2)).tolist()]
    return np.reshape(flat, np.shape(z))
