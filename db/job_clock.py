"""A job's time: what its budget pays for."""

from datetime import datetime
from typing import Any

UNCOUNTED_S = 30.0
"""Longest time that nobody has counted and that yet counts: workers count every few seconds."""


def elapsed_s(job: Any, at: datetime) -> float:
    """Seconds from a job's first use of its device to its end, without the time it waited for the device, nor
    that by which the clock was set; 0 before the start.

    Args:
        job: `JobRow`, or a row with its columns.
        at: time of the database.
    """
    if job.started_at is None:
        return 0.0
    end = job.finished_at or at
    if job.counted_at is not None and not 0 <= (end - job.counted_at).total_seconds() <= UNCOUNTED_S:
        end = job.counted_at
    return float(max(0.0, ((job.waiting_since or end) - job.started_at).total_seconds() - job.waited_s))
