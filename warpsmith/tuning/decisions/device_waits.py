"""Jobs that wait for a device: they are bound to one, report what they wait for, or are given up. Pure."""

from warpsmith.domain.state import JobState
from warpsmith.tuning.decisions.snapshot import Action, JobSnapshot, NoteWait, PinDevice, SetJobState


def pin(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """Bind a job to a device class that is offered."""
    if snapshot.available_classes:
        return (PinDevice(sorted(snapshot.available_classes)[0]),)
    words = f"waiting for a worker with back end {snapshot.job.kernel.backend.value}"
    if snapshot.unserved is not None:
        words = snapshot.unserved.words(begun=False)
        if snapshot.unserved.is_over(begun=False):
            return (SetJobState(JobState.FAILED, words),)
    return (SetJobState(JobState.QUEUED, words),)


def given_up(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """Actions for a job whose device no worker offers any more; empty if a worker does."""
    if snapshot.unserved is None:
        return ()
    begun = any(t.result is not None for t in snapshot.tasks)
    words = snapshot.unserved.words(begun)
    over = snapshot.unserved.is_over(begun)
    return (SetJobState(JobState.FAILED, words) if over else NoteWait(words),)
