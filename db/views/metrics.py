"""Metrics of the service, counted in the database."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine import clock, now
from db.repositories.workers import ALIVE_S, WorkerRepository
from db.tables import AgentStepRow, CompilationRow, JobRow, OutboxRow, TaskRow, TrialRow
from warpsmith.domain.state import JobState, TaskKind, TaskState, TrialState

RECENT_S = 600.0
"""Window of durations in seconds, so that a figure shows the present."""


@dataclass(frozen=True)
class Sample:
    """Value of a metric, with its labels."""

    name: str
    kind: str
    """`gauge` or `counter`."""
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def samples(session: Session) -> list[Sample]:
    """All samples, in one transaction."""
    parts = (_jobs, _tasks, _lost, _trials, _durations, _outbox, _workers, _compilations, _agents)
    return [sample for part in parts for sample in part(session)]


def _jobs(session: Session) -> Iterator[Sample]:
    query = select(JobRow.state, func.count()).group_by(JobRow.state)
    found = {state: int(count) for state, count in session.execute(query)}
    for state in JobState:
        value = found.get(state, 0)
        yield Sample("warpsmith_jobs", "gauge", "Jobs by state.", value, {"state": state.value})


def _tasks(session: Session) -> Iterator[Sample]:
    query = select(TaskRow.queue, TaskRow.state, func.count(), func.min(TaskRow.notified_at))
    open_states = (TaskState.QUEUED, TaskState.RUNNING)
    query = query.where(TaskRow.state.in_(open_states)).group_by(TaskRow.queue, TaskRow.state)
    at = now(session)
    for queue, state, count, oldest in session.execute(query):
        labels = {"queue": queue}
        if state is TaskState.RUNNING:
            yield Sample("warpsmith_tasks_running", "gauge", "Tasks that a worker runs.", count, labels)
            continue
        yield Sample("warpsmith_queue_depth", "gauge", "Tasks that wait.", count, labels)
        age = max(0.0, (at - oldest).total_seconds())
        words = "Since the last notification of the longest waiting task."
        yield Sample("warpsmith_queue_oldest_seconds", "gauge", words, age, labels)


def _lost(session: Session) -> Iterator[Sample]:
    """Attempts without a result; only tasks tried more than once have any."""
    causes: dict[str, int] = {}
    for history in session.scalars(select(TaskRow.history).where(TaskRow.error != "")):
        for entry in history:
            cause = str(entry["cause"])
            causes[cause] = causes.get(cause, 0) + 1
    causes.setdefault("lease expired", 0)
    for cause, count in sorted(causes.items()):
        words = "Attempts without a result, by cause; `lease expired` are lease expiries."
        yield Sample("warpsmith_task_attempts_lost_total", "counter", words, count, {"cause": cause})
    dead = session.scalar(select(func.count()).where(TaskRow.state == TaskState.DEAD)) or 0
    yield Sample("warpsmith_tasks_dead_total", "counter", "Tasks that were given up.", dead)


def _trials(session: Session) -> Iterator[Sample]:
    query = select(TrialRow.outcome_kind, TrialRow.stage, func.count())
    query = query.where(TrialRow.state == TrialState.FINISHED, ~TrialRow.reused)
    for kind, stage, count in session.execute(query.group_by(TrialRow.outcome_kind, TrialRow.stage)):
        outcome = str(kind) if stage is None else f"{kind}_{stage}"
        words = "Finished trials by outcome."
        yield Sample("warpsmith_trials_total", "counter", words, count, {"outcome": outcome})
    query_s = select(func.coalesce(func.sum(TrialRow.seconds), 0.0))
    words = "Seconds that finished trials took."
    yield Sample("warpsmith_trial_seconds_total", "counter", words, session.scalar(query_s) or 0.0)
    proposed = select(func.count()).where(TrialRow.state == TrialState.PROPOSED)
    words = "Trials that were proposed and have not finished."
    yield Sample("warpsmith_trials_open", "gauge", words, session.scalar(proposed) or 0)


def _durations(session: Session) -> Iterator[Sample]:
    """Means of the last ten minutes: how long tasks waited for a worker, and how long they took."""
    query = select(TaskRow.kind, TaskRow.created_at, TaskRow.started_at, TaskRow.finished_at).where(
        TaskRow.state == TaskState.DONE, TaskRow.finished_at > clock(session, -RECENT_S)
    )
    waited: dict[TaskKind, list[float]] = {}
    took: dict[TaskKind, list[float]] = {}
    for kind, created_at, started_at, finished_at in session.execute(query.limit(5000)):
        if started_at is not None and finished_at is not None:
            waited.setdefault(kind, []).append((started_at - created_at).total_seconds())
            took.setdefault(kind, []).append((finished_at - started_at).total_seconds())
    for name, words, values in (
        ("warpsmith_task_wait_seconds", "Mean wait of tasks ended in the last ten minutes.", waited),
        ("warpsmith_task_duration_seconds", "Mean duration of tasks ended in the last ten minutes.", took),
    ):
        for kind, seconds in values.items():
            yield Sample(name, "gauge", words, sum(seconds) / len(seconds), {"kind": kind.value})


def _outbox(session: Session) -> Iterator[Sample]:
    waiting = session.scalar(select(func.count()).where(OutboxRow.published_at.is_(None))) or 0
    words = "Notifications that the broker has not taken yet; grows while it is away."
    yield Sample("warpsmith_outbox_waiting", "gauge", words, waiting)


def _workers(session: Session) -> Iterator[Sample]:
    alive = WorkerRepository(session).seen_lately(ALIVE_S)
    yield Sample("warpsmith_workers_alive", "gauge", "Workers heard of lately.", len(alive))
    devices: dict[str, int] = {}
    for worker in alive:
        for device in worker.devices:
            devices[device.device_class] = devices.get(device.device_class, 0) + 1
    for name, count in sorted(devices.items()):
        words = "Devices of living workers."
        yield Sample("warpsmith_devices", "gauge", words, count, {"device_class": name})


def _compilations(session: Session) -> Iterator[Sample]:
    """Compilations of the last minutes; see `db.repositories.remote_compilations`."""
    query = select(CompilationRow.queue, CompilationRow.state, func.count())
    for queue, state, count in session.execute(query.group_by(CompilationRow.queue, CompilationRow.state)):
        words = "Kernels that compile nodes were asked for in the last ten minutes, by state."
        labels = {"queue": queue, "state": state.value}
        yield Sample("warpsmith_compilations", "gauge", words, count, labels)


def _agents(session: Session) -> Iterator[Sample]:
    query = select(
        AgentStepRow.role,
        AgentStepRow.provider,
        func.count(),
        func.sum(AgentStepRow.tokens),
        func.sum(AgentStepRow.usd),
        func.sum(AgentStepRow.latency_s),
    ).group_by(AgentStepRow.role, AgentStepRow.provider)
    for role, provider, steps, tokens, usd, seconds in session.execute(query):
        labels = {"role": role, "provider": provider}
        yield Sample("warpsmith_agent_steps_total", "counter", "Answers of agents.", steps, labels)
        yield Sample("warpsmith_agent_tokens_total", "counter", "Tokens of models.", tokens or 0, labels)
        yield Sample("warpsmith_agent_usd_total", "counter", "Cost of models.", usd or 0.0, labels)
        words = "Seconds that answers took."
        yield Sample("warpsmith_agent_seconds_total", "counter", words, seconds or 0.0, labels)
