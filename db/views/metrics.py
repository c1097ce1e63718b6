"""Metrics of the service, counted in the database."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import ColumnElement, func, select, true, update
from sqlalchemy.orm import Mapped, Session

from db.engine import clock, insert_new, now
from db.repositories.workers import ALIVE_S, WorkerRepository
from db.tables import AgentStepRow, CompilationRow, DeletedCountRow, JobRow, OutboxRow, TaskRow, TrialRow
from warpsmith.domain.state import JobState, TaskKind, TaskState, TrialState

RECENT_S = 600.0
"""Window of durations in seconds, so that a figure shows the present."""


@dataclass(frozen=True)
class Sample:
    """Value of a metric, with its labels."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Prometheus' type of the metric."""
        return "counter" if self.name.endswith("_total") else "gauge"

    @property
    def key(self) -> tuple[str, str]:
        """Name and labels, as a row of `DeletedCountRow` has them."""
        return self.name, json.dumps(dict(self.labels), sort_keys=True)


def samples(session: Session) -> list[Sample]:
    """All samples, in one transaction."""
    parts = (_jobs, _tasks, _open_trials, _durations, _outbox, _workers, _compilations)
    deleted = {(row.name, row.labels): row.value for row in session.scalars(select(DeletedCountRow))}
    counted = [replace(s, value=s.value + deleted.pop(s.key, 0.0)) for s in _counters(session)]
    counted += [Sample(n, "Of deleted jobs.", v, json.loads(labels)) for (n, labels), v in deleted.items()]
    return [*(sample for part in parts for sample in part(session)), *counted]


def keep_counts(session: Session, job_ids: Sequence[str]) -> None:
    """Keep what jobs that are about to be deleted add to the counters, which must never fall."""
    for sample in _counters(session, job_ids):
        name, labels = sample.key
        session.execute(insert_new(session, DeletedCountRow).values(name=name, labels=labels, value=0.0))
        added = update(DeletedCountRow).values(value=DeletedCountRow.value + sample.value)
        session.execute(added.filter_by(name=name, labels=labels))


def _counters(session: Session, job_ids: Sequence[str] | None = None) -> list[Sample]:
    """Samples of the counters, over these jobs or over all that are stored."""

    def of(column: Mapped[str]) -> ColumnElement[bool]:
        return true() if job_ids is None else column.in_(job_ids)

    return [
        *_lost(session, of(TaskRow.job_id)),
        *_trials(session, of(TrialRow.job_id)),
        *_agents(session, of(AgentStepRow.job_id)),
    ]


def _jobs(session: Session) -> Iterator[Sample]:
    query = select(JobRow.state, func.count()).group_by(JobRow.state)
    found = {state: int(count) for state, count in session.execute(query)}
    for state in JobState:
        yield Sample("warpsmith_jobs", "Jobs by state.", found.get(state, 0), {"state": state.value})


def _tasks(session: Session) -> Iterator[Sample]:
    query = select(TaskRow.queue, TaskRow.state, func.count(), func.min(TaskRow.notified_at))
    open_states = (TaskState.QUEUED, TaskState.RUNNING)
    query = query.where(TaskRow.state.in_(open_states)).group_by(TaskRow.queue, TaskRow.state)
    at = now(session)
    for queue, state, count, oldest in session.execute(query):
        labels = {"queue": queue}
        if state is TaskState.RUNNING:
            yield Sample("warpsmith_tasks_running", "Tasks that a worker runs.", count, labels)
            continue
        yield Sample("warpsmith_queue_depth", "Tasks that wait.", count, labels)
        age = max(0.0, (at - oldest).total_seconds())
        words = "Since the last notification of the longest waiting task."
        yield Sample("warpsmith_queue_oldest_seconds", words, age, labels)


def _lost(session: Session, of: ColumnElement[bool]) -> Iterator[Sample]:
    """Attempts without a result; only tasks tried more than once have any."""
    histories = session.scalars(select(TaskRow.history).where(TaskRow.error != "", of))
    causes = Counter(str(entry["cause"]) for history in histories for entry in history)
    causes["lease expired"] += 0
    for cause, count in sorted(causes.items()):
        words = "Attempts without a result, by cause; `lease expired` are lease expiries."
        yield Sample("warpsmith_task_attempts_lost_total", words, count, {"cause": cause})
    dead = session.scalar(select(func.count()).where(TaskRow.state == TaskState.DEAD, of)) or 0
    yield Sample("warpsmith_tasks_dead_total", "Tasks that were given up.", dead)


def _trials(session: Session, of: ColumnElement[bool]) -> Iterator[Sample]:
    query = select(TrialRow.outcome_kind, TrialRow.stage, func.count())
    query = query.where(TrialRow.state == TrialState.FINISHED, ~TrialRow.reused, of)
    for kind, stage, count in session.execute(query.group_by(TrialRow.outcome_kind, TrialRow.stage)):
        outcome = str(kind) if stage is None else f"{kind}_{stage}"
        yield Sample("warpsmith_trials_total", "Finished trials by outcome.", count, {"outcome": outcome})
    seconds = session.scalar(select(func.sum(TrialRow.seconds)).where(of)) or 0.0
    yield Sample("warpsmith_trial_seconds_total", "Seconds that finished trials took.", seconds)


def _open_trials(session: Session) -> Iterator[Sample]:
    count = session.scalar(select(func.count()).where(TrialRow.state == TrialState.PROPOSED)) or 0
    yield Sample("warpsmith_trials_open", "Trials that were proposed and have not finished.", count)


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
            yield Sample(name, words, sum(seconds) / len(seconds), {"kind": kind.value})


def _outbox(session: Session) -> Iterator[Sample]:
    count = session.scalar(select(func.count()).where(OutboxRow.published_at.is_(None))) or 0
    yield Sample("warpsmith_outbox_waiting", "Notifications that the broker has not taken yet.", count)


def _workers(session: Session) -> Iterator[Sample]:
    alive = WorkerRepository(session).seen_lately(ALIVE_S)
    yield Sample("warpsmith_workers_alive", "Workers heard of lately.", len(alive))
    devices = Counter(device.device_class for worker in alive for device in worker.devices)
    for name, count in sorted(devices.items()):
        yield Sample("warpsmith_devices", "Devices of living workers.", count, {"device_class": name})


def _compilations(session: Session) -> Iterator[Sample]:
    """Compilations of the last minutes; see `db.repositories.remote_compilations`."""
    query = select(CompilationRow.queue, CompilationRow.state, func.count())
    for queue, state, count in session.execute(query.group_by(CompilationRow.queue, CompilationRow.state)):
        words = "Kernels that compile nodes were asked for in the last ten minutes, by state."
        labels = {"queue": queue, "state": state.value}
        yield Sample("warpsmith_compilations", words, count, labels)


def _agents(session: Session, of: ColumnElement[bool]) -> Iterator[Sample]:
    keys = (AgentStepRow.role, AgentStepRow.provider)
    sums = func.sum(AgentStepRow.tokens), func.sum(AgentStepRow.usd), func.sum(AgentStepRow.latency_s)
    query = select(*keys, func.count(), *sums).where(of).group_by(*keys)
    for role, provider, steps, tokens, usd, seconds in session.execute(query):
        labels = {"role": role, "provider": provider}
        yield Sample("warpsmith_agent_steps_total", "Answers of agents.", steps, labels)
        yield Sample("warpsmith_agent_tokens_total", "Tokens of models.", tokens or 0, labels)
        yield Sample("warpsmith_agent_usd_total", "Cost of models.", usd or 0.0, labels)
        yield Sample("warpsmith_agent_seconds_total", "Seconds that answers took.", seconds or 0.0, labels)
