"""Several slices of one search at once: how they share its trials, and what they brought back."""

from collections.abc import Iterable

from warpsmith.domain.state import TaskKind
from warpsmith.tuning.actions import StartTask, TaskView
from warpsmith.tuning.tasks import SlicePayload, SliceResult


def start_slices(candidate: str, trials: int, count: int, seconds: float, *, shared: bool) -> list[StartTask]:
    """Up to `count` slices that have these trials between them.

    Args:
        shared: others may run beside them.
    """
    shares = [trials // count + (n < trials % count) for n in range(count)]
    return [
        StartTask(
            TaskKind.SLICE, SlicePayload(candidate=candidate, trials=share, seconds=seconds, shared=shared)
        )
        for share in shares
        if share > 0
    ]


def slice_results(tasks: Iterable[TaskView], candidate: str) -> list[SliceResult]:
    """What slices of a candidate brought back, in their order."""
    return [
        t.result
        for t in tasks
        if isinstance(t.payload, SlicePayload)
        and t.payload.candidate == candidate
        and isinstance(t.result, SliceResult)
    ]
