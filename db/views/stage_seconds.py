"""Division of a job's time into stages and rounds."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.engine import now
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.tables import JobRow, TaskRow
from warpsmith.chart_models import JobSeconds, JobStage, StageSeconds
from warpsmith.domain.state import TaskKind, TaskState
from warpsmith.tuning.tasks import ProfilePayload, SlicePayload, StepPayload, ToolPayload

_STAGES: Mapping[TaskKind, JobStage] = {
    TaskKind.BASELINE: "baseline",
    TaskKind.CHECK_CASES: "baseline",
    TaskKind.PROFILE: "agents",
    TaskKind.AGENT_STEP: "agents",
    TaskKind.TOOL: "agents",
    TaskKind.SLICE: "search",
    TaskKind.VERIFY: "verification",
}
_FIRST: Sequence[JobStage] = ("verification", "search", "baseline", "agents", "queue", "device")
"""Stages by precedence: of those that run at one moment, the first counts."""

_NONE: tuple[JobStage, int | None] = ("decisions", None)


@dataclass(frozen=True)
class StageSpan:
    """A stage of a job from one moment to another."""

    stage: JobStage
    round: int | None
    begin: datetime
    end: datetime


def stage_seconds(session: Session, job_id: str) -> JobSeconds:
    """Seconds of a job by stage, to its end or to now.

    Raises:
        NotFound: no job has that id.
    """
    job = JobRepository(session).get(job_id)
    columns = (
        TaskRow.id,
        TaskRow.kind,
        TaskRow.state,
        TaskRow.payload,
        TaskRow.created_at,
        TaskRow.started_at,
        TaskRow.finished_at,
    )
    tasks = session.execute(select(*columns).where(TaskRow.job_id == job_id).order_by(TaskRow.number)).all()
    rounds = {c.id: c.round for c in CandidateRepository(session).of_job(job_id)}
    end = job.finished_at or now(session)
    return seconds_of(list(_spans(job, tasks, rounds, end)), job.created_at, end)


def seconds_of(spans: Sequence[StageSpan], begin: datetime, end: datetime) -> JobSeconds:
    """Seconds by stage and round between two moments; where no span is, `decisions`."""
    turns = [(min(max(at, begin), end), by, s) for s in spans for at, by in ((s.begin, 1), (s.end, -1))]
    turns.sort(key=lambda turn: turn[0])
    running: Counter[tuple[JobStage, int | None]] = Counter()
    found: dict[tuple[JobStage, int | None], float] = {}
    at = begin
    for moment, by, span in [*turns, (end, 0, None)]:
        if moment > at:
            counted = min(+running, key=lambda key: _FIRST.index(key[0]), default=_NONE)
            found[counted] = found.get(counted, 0.0) + (moment - at).total_seconds()
            at = moment
        if span is not None:
            running[span.stage, span.round] += by
    stages = tuple(StageSeconds(stage=s, round=r, seconds=round(v, 3)) for (s, r), v in found.items())
    return JobSeconds(seconds=round(sum(s.seconds for s in stages), 3), stages=stages)


def _spans(
    job: JobRow, tasks: Sequence[Any], rounds: Mapping[str, int], end: datetime
) -> Iterator[StageSpan]:
    """Spans of the job's work and waits. An attempt that was lost is a wait for the next one."""
    steps = {t.id: t.payload.round for t in tasks if isinstance(t.payload, StepPayload)}
    yield StageSpan("queue", None, job.created_at, job.started_at or end)
    for task in tasks:
        round_ = _round(task.payload, steps, rounds)
        until = task.finished_at or end
        if task.kind is TaskKind.AGENT_STEP:
            yield StageSpan("agents", round_, task.created_at, until)
            continue
        waits = task.started_at is None or task.state is TaskState.QUEUED
        began = until if waits else task.started_at
        yield StageSpan("device", None, task.created_at, began)
        yield StageSpan(_STAGES[task.kind], round_, began, until)


def _round(payload: object, steps: Mapping[str, int], rounds: Mapping[str, int]) -> int | None:
    match payload:
        case StepPayload():
            return payload.round
        case ToolPayload():
            return steps.get(payload.step)
        case SlicePayload() | ProfilePayload():
            return rounds.get(payload.candidate)
    return None
