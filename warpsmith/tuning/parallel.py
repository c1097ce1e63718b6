"""What the slices of a search brought back; several may run at once."""

from collections.abc import Iterable

from warpsmith.tuning.actions import TaskView
from warpsmith.tuning.tasks import SlicePayload, SliceResult


def slice_results(tasks: Iterable[TaskView], candidate: str) -> list[SliceResult]:
    """What slices of a candidate brought back, in their order."""
    return [
        t.result
        for t in tasks
        if isinstance(t.payload, SlicePayload)
        and t.payload.candidate == candidate
        and isinstance(t.result, SliceResult)
    ]


def is_spent(tasks: Iterable[TaskView], candidate: str, trials: int) -> bool:
    """Whether slices of a candidate that may have so many trials in all have proposed them all."""
    return any(
        isinstance(t.payload, SlicePayload)
        and t.payload.candidate == candidate
        and t.payload.candidate_trials == trials
        and isinstance(t.result, SliceResult)
        and t.result.spent
        for t in tasks
    )
