"""`decide` drives a job from its rows alone; here the rows live in a list."""

from dataclasses import replace

import pytest

from tests.jobs import DEVICE, scale_job
from warpsmith.domain.job import Budget
from warpsmith.domain.state import CandidateState, JobState, TaskKind, TaskState
from warpsmith.domain.template import Template
from warpsmith.tuning.decide import (
    MAX_REPAIRS,
    AddCandidate,
    CandidateSummary,
    JobSnapshot,
    PinDevice,
    SetCandidate,
    SetJobState,
    StartTask,
    TaskView,
    decide,
)
from warpsmith.tuning.tasks import (
    BaselineResult,
    Choice,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyResult,
)


class Rows:
    """The rows of one job, and workers that answer at once with what the test says."""

    def __init__(self, budget: Budget, **answers):
        job = scale_job(budget=budget)
        self.snapshot = JobSnapshot(job, JobState.QUEUED, None, ("opencl-test",), 0.0, 0, (), ())
        self.answers = answers
        self.kinds: list[str] = []

    def run(self, limit: int = 200) -> JobSnapshot:
        for _ in range(limit):
            if self.snapshot.state.is_terminal:
                return self.snapshot
            actions = decide(self.snapshot)
            assert actions == decide(self.snapshot)
            assert actions, f"stuck in {self.snapshot}"
            for action in actions:
                self.apply(action)
        raise AssertionError("does not end")

    def apply(self, action) -> None:
        s = self.snapshot
        match action:
            case PinDevice():
                self.snapshot = replace(s, device_class=action.device_class)
            case SetJobState():
                self.snapshot = replace(s, state=action.state)
            case SetCandidate():
                changed = [replace(c, state=action.state) if c.id == action.id else c for c in s.candidates]
                self.snapshot = replace(s, candidates=tuple(changed))
            case AddCandidate():
                new = CandidateSummary(
                    f"c{action.number}", action.number, action.round, CandidateState.SEARCHING,
                    action.made_by, 0, 0, None,
                )  # fmt: skip
                self.snapshot = replace(s, candidates=(*s.candidates, new))
            case StartTask():
                self.execute(action)

    def execute(self, action: StartTask) -> None:
        self.kinds.append(action.kind.value)
        answer = self.answers.get(action.kind.value)
        result = answer(self, action.payload) if answer else default_answer(self, action)
        s = self.snapshot
        view = TaskView(f"t{len(s.tasks)}", action.kind, TaskState.DONE, action.payload, result)
        self.snapshot = replace(s, tasks=(*s.tasks, view))
        if isinstance(result, SliceResult):
            self.count(action.payload.candidate, result)

    def count(self, candidate: str, result: SliceResult) -> None:
        s = self.snapshot
        changed = [
            replace(
                c, trials=c.trials + result.trials, measured=c.measured + result.trials, best_objective=0.5
            )
            if c.id == candidate and not result.rejected
            else c
            for c in s.candidates
        ]
        self.snapshot = replace(s, candidates=tuple(changed), trials_done=s.trials_done + result.trials)


def default_answer(rows: Rows, action: StartTask):
    match action.kind:
        case TaskKind.BASELINE:
            return BaselineResult(device=DEVICE)
        case TaskKind.AGENT_STEP if action.payload.role == "planner":
            return StepResult(provider="test", plan="go on")
        case TaskKind.AGENT_STEP:
            return StepResult(provider="test", template=Template(kernel=rows.snapshot.job.kernel))
        case TaskKind.SLICE:
            return SliceResult(trials=min(7, action.payload.trials))
        case TaskKind.VERIFY:
            return VerifyResult(comparisons=(), choices=(Choice(workload="n=64"),), speedup=1.0)


def test_a_job_runs_from_baseline_to_verification() -> None:
    rows = Rows(Budget(rounds=1, trials=20))
    end = rows.run()
    assert end.state is JobState.DONE
    assert end.trials_done == 20
    assert rows.kinds == ["baseline", "agent_step", "slice", "slice", "slice", "verify"]


def test_rounds_share_the_trials_and_each_begins_with_a_plan() -> None:
    rows = Rows(Budget(rounds=3, trials=60))
    end = rows.run()
    assert [c.trials for c in end.candidates] == [20, 20, 20]
    roles = [t.payload.role for t in end.tasks if isinstance(t.payload, StepPayload)]
    assert roles == ["templater", "planner", "templater", "planner", "templater"]
    assert end.tasks[-1].kind is TaskKind.VERIFY


def test_a_planner_that_stops_ends_the_search() -> None:
    def step(rows, payload):
        if payload.role == "planner":
            return StepResult(provider="test", stop="nothing to gain")
        return StepResult(provider="test", template=Template(kernel=rows.snapshot.job.kernel))

    rows = Rows(Budget(rounds=5, trials=50), agent_step=step)
    end = rows.run()
    assert end.state is JobState.DONE
    assert len(end.candidates) == 1


def test_an_exhausted_space_ends_the_candidate_early() -> None:
    rows = Rows(Budget(trials=500), slice=lambda r, p: SliceResult(trials=3, exhausted=True))
    assert rows.run().trials_done == 3


def test_rejected_templates_are_mended_a_bounded_number_of_times() -> None:
    rows = Rows(Budget(trials=50), slice=lambda r, p: SliceResult(trials=1, rejected="wrong"))
    end = rows.run()
    assert end.state is JobState.FAILED
    assert len(end.candidates) == MAX_REPAIRS + 1
    attempts = [t.payload.attempt for t in end.tasks if isinstance(t.payload, StepPayload)]
    assert attempts == [0, 1, 2]
    assert [t.payload.failure for t in end.tasks if isinstance(t.payload, StepPayload)] == [
        "",
        "wrong",
        "wrong",
    ]


def test_a_mended_template_is_searched() -> None:
    def slice_(rows, payload: SlicePayload):
        bad = payload.candidate == "c0"
        return SliceResult(trials=1, rejected="wrong") if bad else SliceResult(trials=payload.trials)

    rows = Rows(Budget(trials=30), slice=slice_)
    end = rows.run()
    assert end.state is JobState.DONE
    assert [c.state for c in end.candidates] == [CandidateState.REJECTED, CandidateState.SEARCHED]


def test_a_refused_baseline_fails_the_job_with_its_reason() -> None:
    refused = BaselineResult(device=DEVICE, refused="the kernel does not compile: x")
    rows = Rows(Budget(), baseline=lambda r, p: refused)
    assert rows.run().state is JobState.FAILED
    assert rows.kinds == ["baseline"]


def test_seconds_end_the_search_but_not_the_verification() -> None:
    def slow(rows, payload):
        rows.snapshot = replace(rows.snapshot, elapsed_s=rows.snapshot.elapsed_s + 30)
        return SliceResult(trials=2)

    rows = Rows(Budget(seconds=60, trials=1000), slice=slow)
    end = rows.run()
    assert end.state is JobState.DONE
    assert rows.kinds.count("slice") == 2
    assert rows.kinds[-1] == "verify"


def test_a_job_waits_for_a_worker_of_its_back_end() -> None:
    rows = Rows(Budget())
    alone = replace(rows.snapshot, available_classes=())
    (action,) = decide(alone)
    assert isinstance(action, SetJobState)
    assert action.state is JobState.QUEUED
    assert "opencl" in action.detail


@pytest.mark.parametrize("state", [TaskState.QUEUED, TaskState.RUNNING])
def test_nothing_is_decided_while_a_task_is_open(state: TaskState) -> None:
    rows = Rows(Budget())
    task = TaskView("t0", TaskKind.BASELINE, state, None, None)
    assert decide(replace(rows.snapshot, device_class="x", tasks=(task,))) == ()


def test_a_task_given_up_fails_the_job() -> None:
    rows = Rows(Budget())
    task = TaskView("t0", TaskKind.BASELINE, TaskState.DEAD, None, None, error="3 attempts")
    (action,) = decide(replace(rows.snapshot, device_class="x", tasks=(task,)))
    assert isinstance(action, SetJobState)
    assert action.state is JobState.FAILED
    assert "3 attempts" in action.detail


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_an_ended_job_stays_as_it_is(state: JobState) -> None:
    assert decide(replace(Rows(Budget()).snapshot, state=state)) == ()
