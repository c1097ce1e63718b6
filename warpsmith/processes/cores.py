"""Number of cores that this process may keep busy."""

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time in a period (`max`: no limit), and the period; control groups, version 2."""


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores that the process is allowed to run on, or fewer where a container has less processor time.

    The machine may have more: a worker beside others is often tied to some of them.
    """
    allowed = len(os.sched_getaffinity(0))
    try:
        limit, period = quota.read_text().split()
        return max(1, min(allowed, math.ceil(int(limit) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):
        return allowed
