"""Categorical kernel density estimate over an enumerated set: the similarity of a configuration to earlier
ones.

Each configuration has a kernel: its own values are likely, and all other values share the rest. Only sums
over configurations are kept, so that the cost of a step does not grow with the search.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.search.models.covariance import Floats
from warpsmith.search.spaces.feasible_set import FeasibleSet

BANDWIDTH = 0.25
"""Share of a kernel that is spread over a parameter's other values."""
GOOD_SHARE = 0.15
MAX_GOOD = 24


class CategoricalDensity:
    """Sums of kernels over the rows that were proposed, that ran and that failed."""

    def __init__(self, feasible: FeasibleSet) -> None:
        columns = [c for c, p in enumerate(feasible.space.parameters) if len(p.values) > 1]
        counts = [len(feasible.space.parameters[c].values) for c in columns]
        self._codes = np.ascontiguousarray(feasible.codes[:, columns].T)
        self._apart = [math.log(BANDWIDTH / n / (1.0 - BANDWIDTH + BANDWIDTH / n)) for n in counts]
        self._asked = np.zeros(len(feasible))
        self._ran = np.zeros(len(feasible))
        self._failed: Floats | None = None
        self._count = 0
        self._good: dict[int, NDArray[np.float32]] = {}
        self.nearest = np.zeros(len(feasible), np.float32)
        """Similarity of each row to the nearest of the search's own proposals: 1 if it was proposed
        itself."""

    def ask(self, row: int, own: bool = True) -> None:
        """A row was proposed, by the search itself unless `own` is False."""
        spread = self._spread(row)
        self._asked += spread
        self._count += 1
        if own:
            np.maximum(self.nearest, spread, out=self.nearest)

    def nearer(self, nearest: NDArray[np.float32], row: int) -> NDArray[np.float32]:
        """Update `nearest` as if a row were proposed besides."""
        return np.maximum(nearest, self._spread(row))

    def tell(self, row: int, ran: bool) -> None:
        """A row ran or failed."""
        spread = self._spread(row)
        if ran:
            self._ran += spread
        else:
            if self._failed is None:
                self._failed = np.zeros(spread.size)
            self._failed += spread

    def ratio(self, ranked: Sequence[int]) -> Floats:
        """Density of each row among the good rows divided by its density among the others.

        Args:
            ranked: measured rows, best first.
        """
        good = ranked[: min(MAX_GOOD, max(3, math.ceil(GOOD_SHARE * len(ranked))))]
        self._good = {r: self._good[r] if r in self._good else self._spread(r) for r in good}
        above: Floats = np.sum(list(self._good.values()), axis=0, dtype=np.float64)
        others = self._count - len(good)
        if not others:
            return above
        below = np.maximum(self._asked - above, 0.0) / others
        result: Floats = above / len(good) / (below + 1e-12)
        return result

    def chance_to_run(self) -> Floats | float:
        """A smoothed estimate of the share of similar rows that ran."""
        if self._failed is None:
            return 1.0
        typical = 2.0 * float(self._asked.mean()) / self._count
        result: Floats = (self._ran + typical) / (self._ran + self._failed + typical)
        return result

    def _spread(self, row: int) -> NDArray[np.float32]:
        """Kernel around one row, relative to its centre, so that many parameters cause no underflow."""
        logs = np.zeros(self._codes.shape[1], np.float32)
        for codes, apart in zip(self._codes, self._apart, strict=True):
            logs += (codes != codes[row]) * np.float32(apart)
        result: NDArray[np.float32] = np.exp(logs)
        return result
