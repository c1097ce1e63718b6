"""Predicts slowness from a compiler's report: low occupancy, and spilled registers.

CUDA's guide to good practice: a low occupancy leaves memory latency uncovered, more occupancy than needed
gains nothing, and spilled registers cost memory traffic.
"""

import numpy as np

OCCUPANCY = (0.0, 0.125, 0.25, 0.375)
SLOWER = (1.0, 0.7, 0.3, 0.0)
"""Slowness at each `OCCUPANCY`, in standard deviations of the log time; linear between, constant beyond."""
SPILLS = 0.5
"""Slowness if registers are spilled, in the same unit.

Both heights were calibrated on recordings (benchmarks/results/search/figures.md).
"""


def slowness(occupancy: float | None, spills: bool) -> float:
    """Expected slowness of a configuration against others, in standard deviations of the log time.

    Args:
        occupancy: resident warps divided by the most that fit; None if unknown.
    """
    idle = 0.0 if occupancy is None else float(np.interp(occupancy, OCCUPANCY, SLOWER))
    return idle + SPILLS * spills
