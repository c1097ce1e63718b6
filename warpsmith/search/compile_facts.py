"""What a compiler's report says of a configuration before it has run: too few threads at once, spills.

CUDA's guide to good practice: a low occupancy always leaves latencies of memory uncovered, and more of it
than is needed gains nothing; registers that are spilled cost traffic to memory.
"""

import numpy as np

OCCUPANCY = (0.0, 0.125, 0.25, 0.375)
SLOWER = (1.0, 0.7, 0.3, 0.0)
"""In standard deviations of the log time, at `OCCUPANCY`; straight lines between, nothing beyond."""
SPILLS = 0.5
"""The same, if registers are spilled.

Both heights were judged on recordings (benchmarks/results/search/figures.md).
"""


def slowness(occupancy: float | None, spills: bool) -> float:
    """How much slower than others a configuration is expected to be, in standard deviations of the log time.

    Args:
        occupancy: resident warps over the most that fit; None where nobody knows.
    """
    idle = 0.0 if occupancy is None else float(np.interp(occupancy, OCCUPANCY, SLOWER))
    return idle + SPILLS * spills
