"""How a job went: a point for every trial, and where its seconds were spent."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine import now
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.tables import CandidateRow, JobRow, TaskRow, TrialRow
from warpsmith.domain.state import TaskKind, TrialState
from warpsmith.http_models import StageSeconds, TrialPoints

_T = TrialRow.__table__
OUTCOMES = ("measured", "cut_short", "rejected")


def trial_points(session: Session, job_id: str, since_s: float = 0.0) -> TrialPoints:
    """The finished trials of a job in the order of their numbers, with what a chart needs of them.

    Args:
        since_s: only trials that ended so many seconds after the job began, or later.

    Raises:
        NotFound: no job has that id.
    """
    job = JobRepository(session).get(job_id)
    begun = begin_of(job)
    query = select(
        _T.c.number,
        _T.c.finished_at,
        _T.c.candidate_id,
        _T.c.objective,
        _T.c.outcome_kind,
        func.coalesce(_T.c.stage + ": " + _T.c.reason_group, "").label("reason"),
        _T.c.reused,
    ).where(_T.c.job_id == job_id, _T.c.state == TrialState.FINISHED)
    if since_s > 0:
        query = query.where(_T.c.finished_at >= begun + timedelta(seconds=since_s))
    rows = session.execute(query.order_by(_T.c.number)).all()
    query_of_candidates = select(CandidateRow.id, CandidateRow.number).where(CandidateRow.job_id == job_id)
    numbers = {row.id: row.number for row in session.execute(query_of_candidates)}
    reasons = {text: n for n, text in enumerate(dict.fromkeys(row.reason for row in rows if row.reason))}
    return TrialPoints(
        number=tuple(row.number for row in rows),
        at_s=tuple(round((row.finished_at - begun).total_seconds(), 2) for row in rows),
        candidate=tuple(numbers[row.candidate_id] for row in rows),
        gain=tuple(_gain(row) for row in rows),
        outcome=tuple(OUTCOMES.index(row.outcome_kind) for row in rows),
        reason=tuple(reasons.get(row.reason) for row in rows),
        reused=tuple(bool(row.reused) for row in rows),
        reasons=tuple(reasons),
    )


def begin_of(job: JobRow) -> datetime:
    """From when on the seconds of a job are counted: from its submission."""
    return job.created_at


def _gain(row: Any) -> float | None:
    if row.outcome_kind != "measured" or not row.objective:
        return None
    return round(1.0 / float(row.objective), 4)


_STAGE = {
    TaskKind.VERIFY: "verification",
    TaskKind.SLICE: "search",
    TaskKind.BASELINE: "baseline",
    TaskKind.CHECK_CASES: "checks",
    TaskKind.PROFILE: "profiling",
    TaskKind.TOOL: "tools",
    TaskKind.AGENT_STEP: "agents",
}
"""In falling order of precedence, where tasks run at a time."""
WAITING, DECIDING = "waiting for a worker", "between tasks"
STAGES = (
    WAITING,
    "baseline",
    "agents",
    "tools",
    "search",
    "profiling",
    "checks",
    "verification",
    DECIDING,
)
"""In the order in which they are shown."""


def stage_seconds(session: Session, job_id: str) -> tuple[StageSeconds, ...]:
    """Where the seconds of a job were spent, from its submission to its end or now; their sum is that time.

    A moment at which tasks run counts for the one that comes first in: verification, search, baseline,
    checks, profiling, tools, agents. A moment at which none runs and one is queued was waiting.

    Raises:
        NotFound: no job has that id.
    """
    job = JobRepository(session).get(job_id)
    end = job.finished_at or now(session)
    spans = list(_spans(TaskRepository(session).of_job(job_id), end))
    order = [*_STAGE.values(), WAITING]
    edges = sorted({job.created_at, end, *(edge for _, *both in spans for edge in both)})
    spent: dict[str, float] = {}
    for begin, until in pairwise(edges):
        if begin < job.created_at or until > end:
            continue
        here = {stage for stage, a, b in spans if a <= begin and until <= b}
        stage = min(here, key=order.index) if here else DECIDING
        spent[stage] = spent.get(stage, 0.0) + (until - begin).total_seconds()
    named = [
        WAITING,
        "baseline",
        "agents",
        "tools",
        "search",
        "profiling",
        "checks",
        "verification",
        DECIDING,
    ]
    return tuple(StageSeconds(stage=name, seconds=spent[name]) for name in named if name in spent)


def _spans(tasks: Sequence[TaskRow], end: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    for task in tasks:
        yield WAITING, task.created_at, task.started_at or task.finished_at or end
        if task.started_at is not None:
            yield _STAGE[task.kind], task.started_at, task.finished_at or end
