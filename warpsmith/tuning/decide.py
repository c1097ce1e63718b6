"""What to do next, as a pure function of what the database holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.domain.job import Job
from warpsmith.domain.state import CandidateState, JobState, TaskKind, TaskState
from warpsmith.domain.template import Template
from warpsmith.tuning.tasks import (
    BaselineResult,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
)

MAX_REPAIRS = 2
"""Templates of one round that may be rejected before the round is given up."""
VERIFY_RESERVE = 0.15
"""Share of the seconds that is kept for the re-measurement of winners."""

Payload = StepPayload | SlicePayload | VerifyPayload | None
Result = BaselineResult | StepResult | SliceResult | VerifyResult | None


@dataclass(frozen=True)
class TaskView:
    """A task as decisions see it."""

    id: str
    kind: TaskKind
    state: TaskState
    payload: Payload
    result: Result
    error: str = ""

    @property
    def is_open(self) -> bool:
        """True while somebody may still bring a result."""
        return self.state in (TaskState.QUEUED, TaskState.RUNNING)


@dataclass(frozen=True)
class CandidateSummary:
    """A candidate as decisions see it."""

    id: str
    number: int
    round: int
    state: CandidateState
    made_by: str
    """Task that made it."""
    trials: int
    measured: int
    best_objective: float | None


@dataclass(frozen=True)
class JobSnapshot:
    """Everything a decision depends on."""

    job: Job
    state: JobState
    device_class: str | None
    available_classes: Sequence[str]
    """Device classes of living workers with the job's back end."""
    elapsed_s: float
    """Since the baseline was started."""
    trials_done: int
    tasks: Sequence[TaskView]
    candidates: Sequence[CandidateSummary]


@dataclass(frozen=True)
class PinDevice:
    """Bind the job to a device class, so that all its timings are comparable."""

    device_class: str


@dataclass(frozen=True)
class StartTask:
    """Queue a task. Agent steps go to `agents`, everything else to the job's device class."""

    kind: TaskKind
    payload: Payload


@dataclass(frozen=True)
class AddCandidate:
    """Store the template an agent step brought."""

    number: int
    round: int
    parent: str | None
    template: Template
    declined: tuple[str, ...]
    made_by: str


@dataclass(frozen=True)
class SetCandidate:
    """Move a candidate."""

    id: str
    state: CandidateState


@dataclass(frozen=True)
class SetJobState:
    """Move the job, or renew its detail."""

    state: JobState
    detail: str


Action = PinDevice | StartTask | AddCandidate | SetCandidate | SetJobState


def decide(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """The next actions; none while a task is open or the job has ended.

    Applying the actions and asking again with the new state leads on until the job ends. Asking
    twice about the same state gives the same answer.
    """
    if snapshot.state.is_terminal:
        return ()
    if snapshot.device_class is None:
        return _pin(snapshot)
    dead = next((t for t in snapshot.tasks if t.state is TaskState.DEAD), None)
    if dead is not None:
        return (SetJobState(JobState.FAILED, f"{dead.kind.value} was given up: {dead.error}"),)
    if any(t.is_open for t in snapshot.tasks):
        return ()
    baseline = _last(snapshot, TaskKind.BASELINE)
    if baseline is None:
        start = StartTask(TaskKind.BASELINE, None)
        return (SetJobState(JobState.BASELINE, "measuring the kernel as it is"), start)
    assert isinstance(baseline.result, BaselineResult)
    if baseline.result.refused:
        return (SetJobState(JobState.FAILED, baseline.result.refused),)
    return _after_baseline(snapshot)


def _pin(snapshot: JobSnapshot) -> tuple[Action, ...]:
    backend = snapshot.job.kernel.backend.value
    if not snapshot.available_classes:
        return (SetJobState(JobState.QUEUED, f"waiting for a worker with back end {backend}"),)
    return (PinDevice(sorted(snapshot.available_classes)[0]),)


def _after_baseline(snapshot: JobSnapshot) -> tuple[Action, ...]:
    verify = _last(snapshot, TaskKind.VERIFY)
    if verify is not None:
        return (SetJobState(JobState.DONE, _summary(verify.result)),)
    if not snapshot.candidates:
        return _template_or_stop(snapshot, round_=1)
    newest = max(snapshot.candidates, key=lambda c: c.number)
    if newest.state is CandidateState.SEARCHING:
        return _search(snapshot, newest)
    return _template_or_stop(snapshot, round_=newest.round + 1)


def _template_or_stop(snapshot: JobSnapshot, round_: int) -> tuple[Action, ...]:
    """Open the next agent step, turn the last one into a candidate, or go on to the verification."""
    made = {c.made_by for c in snapshot.candidates}
    step = _last(snapshot, TaskKind.AGENT_STEP)
    if step is not None and step.id not in made:
        return _use_step(snapshot, step)
    newest = max(snapshot.candidates, key=lambda c: c.number, default=None)
    if newest is not None and newest.state is CandidateState.REJECTED:
        repair = _repair(snapshot, newest)
        if repair is not None:
            return (SetJobState(JobState.PLANNING, "mending a rejected template"), repair)
    spent = _budget_spent(snapshot)
    if spent:
        return _finish_search(snapshot, spent)
    if round_ > snapshot.job.budget.rounds:
        return _finish_search(snapshot, f"all {snapshot.job.budget.rounds} rounds are done")
    payload = StepPayload(
        role="templater" if round_ == 1 else "planner", round=round_, parent=_best_parent(snapshot)
    )
    detail = f"round {round_}: {payload.role} at work"
    return (SetJobState(JobState.PLANNING, detail), StartTask(TaskKind.AGENT_STEP, payload))


def _use_step(snapshot: JobSnapshot, step: TaskView) -> tuple[Action, ...]:
    assert isinstance(step.payload, StepPayload)
    assert isinstance(step.result, StepResult)
    if step.result.stop:
        return _finish_search(snapshot, step.result.stop)
    template = step.result.template
    if template is None and step.payload.role != "planner":
        return _finish_search(snapshot, f"the {step.payload.role} brought no template")
    if template is None:
        follow = step.payload.model_copy(update={"role": "templater", "plan": step.result.plan})
        return (StartTask(TaskKind.AGENT_STEP, follow),)
    if step.result.ask_tuner:
        changes = {"role": "tuner", "draft": template, "declined": step.result.declined}
        return (StartTask(TaskKind.AGENT_STEP, step.payload.model_copy(update=changes)),)
    candidate = AddCandidate(
        number=len(snapshot.candidates),
        round=step.payload.round,
        parent=step.payload.parent,
        template=template,
        declined=step.result.declined,
        made_by=step.id,
    )
    detail = f"round {step.payload.round}: searching candidate {candidate.number}"
    return (candidate, SetJobState(JobState.SEARCHING, detail))


def _search(snapshot: JobSnapshot, candidate: CandidateSummary) -> tuple[Action, ...]:
    last = _last_slice(snapshot, candidate.id)
    if last is not None and last.rejected:
        return (SetCandidate(candidate.id, CandidateState.REJECTED),)
    share = _trial_share(snapshot, candidate)
    left = share - candidate.trials
    if (last is not None and last.exhausted) or left <= 0 or _budget_spent(snapshot):
        return (SetCandidate(candidate.id, CandidateState.SEARCHED),)
    payload = SlicePayload(candidate=candidate.id, trials=left, seconds=_seconds_left(snapshot))
    detail = f"round {candidate.round}: searching candidate {candidate.number}"
    return (SetJobState(JobState.SEARCHING, detail), StartTask(TaskKind.SLICE, payload))


def _finish_search(snapshot: JobSnapshot, why: str) -> tuple[Action, ...]:
    if not any(c.measured for c in snapshot.candidates):
        detail = f"no configuration passed its checks ({why}); see the rejections"
        return (SetJobState(JobState.FAILED, detail),)
    verify = StartTask(TaskKind.VERIFY, VerifyPayload())
    return (SetJobState(JobState.VERIFYING, f"measuring winners again; {why}"), verify)


def _repair(snapshot: JobSnapshot, newest: CandidateSummary) -> StartTask | None:
    attempts = sum(1 for c in snapshot.candidates if c.round == newest.round)
    if attempts > MAX_REPAIRS or _budget_spent(snapshot):
        return None
    last = _last_slice(snapshot, newest.id)
    payload = StepPayload(
        role="repairer",
        round=newest.round,
        attempt=attempts,
        parent=_best_parent(snapshot),
        failure=last.rejected if last is not None else "",
        rejected=newest.id,
    )
    return StartTask(TaskKind.AGENT_STEP, payload)


def _trial_share(snapshot: JobSnapshot, candidate: CandidateSummary) -> int:
    """Trials this candidate may have in all: what others left, over the rounds that are to come."""
    others = sum(c.trials for c in snapshot.candidates if c.id != candidate.id)
    rounds_left = max(1, snapshot.job.budget.rounds - candidate.round + 1)
    return -(-(snapshot.job.budget.trials - others) // rounds_left)


def _budget_spent(snapshot: JobSnapshot) -> str:
    budget = snapshot.job.budget
    if snapshot.trials_done >= budget.trials:
        return f"the budget of {budget.trials} trials is spent"
    if _seconds_left(snapshot) <= 1:
        return f"the budget of {budget.seconds:g} seconds is spent"
    return ""


def _seconds_left(snapshot: JobSnapshot) -> float:
    return max(0.001, snapshot.job.budget.seconds * (1 - VERIFY_RESERVE) - snapshot.elapsed_s)


def _best_parent(snapshot: JobSnapshot) -> str | None:
    measured = [c for c in snapshot.candidates if c.best_objective is not None]
    return min(measured, key=lambda c: c.best_objective or 0.0).id if measured else None


def _last(snapshot: JobSnapshot, kind: TaskKind) -> TaskView | None:
    return next((t for t in reversed(snapshot.tasks) if t.kind is kind), None)


def _last_slice(snapshot: JobSnapshot, candidate: str) -> SliceResult | None:
    for task in reversed(snapshot.tasks):
        if isinstance(task.payload, SlicePayload) and task.payload.candidate == candidate:
            return task.result if isinstance(task.result, SliceResult) else None
    return None


def _summary(result: Result) -> str:
    assert isinstance(result, VerifyResult)
    faster = sum(c.candidate is not None for c in result.choices)
    return f"{result.speedup:.2f}x; {faster} of {len(result.choices)} workloads faster than the baseline"
