"""Jobs that nobody can serve: what they say, when they are given up, and what keeps them."""

from dataclasses import replace

import pytest

from testbed.job_in_memory import Rows
from warpsmith.domain.jobs.job import Budget
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import JobSnapshot, NoteWait, SetJobState, TaskView
from warpsmith.tuning.decisions.unserved_jobs import MOST_REASONS, Unserved
from warpsmith.tuning.tasks import BaselineResult

LACKING = {"the NVIDIA driver is missing": ("b", "a"), "it serves no such device": ("c",)}
MISSING = Unserved("back end cuda", LACKING, 30.0, 600.0)


def _waiting(unserved: Unserved) -> JobSnapshot:
    return replace(Rows(Budget()).snapshot, available_classes=(), unserved=unserved)


def _pinned(unserved: Unserved, *, begun: bool) -> JobSnapshot:
    done = TaskView("t0", TaskKind.BASELINE, TaskState.DONE, None, BaselineResult(device=DEVICE))
    next_ = TaskView("t1", TaskKind.SLICE, TaskState.QUEUED, None, None)
    first = TaskView("t0", TaskKind.BASELINE, TaskState.QUEUED, None, None)
    snapshot = replace(_waiting(unserved), state=JobState.BASELINE, device_class="x")
    return replace(snapshot, tasks=(done, next_) if begun else (first,))


def _decided(snapshot: JobSnapshot) -> SetJobState:
    (action,) = decide(snapshot)
    assert isinstance(action, SetJobState)
    return action


def test_a_waiting_job_says_which_workers_lack_what_and_when_it_fails() -> None:
    said = _decided(_waiting(MISSING))
    assert said.state is JobState.QUEUED
    assert "a, b: the NVIDIA driver is missing; c: it serves no such device" in said.detail
    assert said.detail.endswith("the job fails when that lasts 10 min")


def test_after_the_stated_time_it_fails() -> None:
    said = _decided(_waiting(replace(MISSING, seconds=600.0)))
    assert said.state is JobState.FAILED
    assert "the NVIDIA driver is missing" in said.detail


def test_on_one_s_own_machine_it_fails_as_soon_as_the_worker_has_reported() -> None:
    said = _decided(_waiting(Unserved("back end cuda", {"the driver is missing": ("here",)}, 0.0, 0.0)))
    assert said.state is JobState.FAILED
    assert said.detail == "this machine has nothing for back end cuda: the driver is missing"
    before = _decided(_waiting(Unserved("back end cuda", {}, 100.0, 0.0)))
    assert (before.state, before.detail) == (JobState.QUEUED, "waiting for a worker with back end cuda")


@pytest.mark.parametrize("begun", [False, True])
def test_a_job_that_has_begun_outlasts_an_outage_of_its_device(begun: bool) -> None:
    (action,) = decide(_pinned(replace(MISSING, seconds=601.0), begun=begun))
    if begun:
        assert isinstance(action, NoteWait)
        assert "fails" not in action.words
    else:
        assert isinstance(action, SetJobState) and action.state is JobState.FAILED


def test_but_not_on_one_s_own_machine() -> None:
    gone = _decided(_pinned(replace(MISSING, limit_s=0.0), begun=True))
    assert gone.state is JobState.FAILED


def test_a_large_fleet_is_not_listed_to_its_end() -> None:
    many = {f"reason {i} {'x' * 1000}": (f"host{i}",) for i in range(50)}
    words = replace(MISSING, lacking=many).words(begun=False)
    assert f"and {50 - MOST_REASONS} more" in words
    assert len(words) < 2000
