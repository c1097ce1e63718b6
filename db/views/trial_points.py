"""The trials of a job as points of a chart: few columns, and no outcome is read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, select, type_coerce
from sqlalchemy.orm import Session

from db.engine import now
from db.repositories.jobs import JobRepository
from db.tables import CandidateRow, TrialRow
from warpsmith.chart_models import RejectionWords, TrialPoints

OVERLAP_S = 15.0
"""Longest time between the moment that a trial is stamped with and the commit that shows it. A request for
what is new goes back so far."""
_TRIAL, _CANDIDATE = TrialRow.__table__, CandidateRow.__table__


def trial_points(session: Session, job_id: str, since_s: float = 0.0) -> TrialPoints:
    """Finished trials of a job.

    Args:
        since_s: seconds after the job's start; trials that ended earlier are left out.

    Raises:
        NotFound: no job has that id.
    """
    job = JobRepository(session).get(job_id)
    if job.started_at is None:
        return TrialPoints()
    read_s = (now(session) - job.started_at).total_seconds()
    # Core tables, so that the tenant is checked once, above, and not for every row.
    query = (
        select(
            _TRIAL.c.number,
            # In UTC, without its zone on SQLite: to add that to each of them takes longer than all the rest.
            type_coerce(_TRIAL.c.finished_at, DateTime(timezone=True)).label("finished_at"),
            _CANDIDATE.c.round,
            _CANDIDATE.c.number.label("candidate"),
            _TRIAL.c.objective,
            _TRIAL.c.outcome_kind,
            _TRIAL.c.stage,
            _TRIAL.c.reason_group,
            _TRIAL.c.reused,
        )
        .join(_CANDIDATE, _CANDIDATE.c.id == _TRIAL.c.candidate_id)
        .where(_TRIAL.c.job_id == job.id, _TRIAL.c.finished_at.is_not(None))
        .order_by(_TRIAL.c.number)
    )
    if since_s > 0:
        query = query.where(_TRIAL.c.finished_at >= job.started_at + timedelta(seconds=since_s))
    following_s = round(max(0.0, read_s - OVERLAP_S), 3)
    rows = session.execute(query).all()
    return _columns(rows, job.started_at, following_s) if rows else TrialPoints(next=following_s)


def seconds_after(started_at: datetime | None, finished_at: datetime | None) -> float | None:
    """Seconds from a job's start to the end of a trial, 0 at least; None if one of both is not known."""
    if started_at is None or finished_at is None:
        return None
    return round(max(0.0, (finished_at - started_at).total_seconds()), 3)


def _columns(rows: Sequence[Any], started_at: datetime, following_s: float) -> TrialPoints:
    number, finished_at, round_, candidate, objective, kind, stage, reason, reused = zip(*rows, strict=True)
    if finished_at[0].tzinfo is None:
        started_at = started_at.replace(tzinfo=None)
    why = [None if s is None else (s, r or "") for s, r in zip(stage, reason, strict=True)]
    index = {words: n for n, words in enumerate(dict.fromkeys(w for w in why if w is not None))}
    return TrialPoints(
        number=number,
        at_s=tuple(round(max(0.0, (at - started_at).total_seconds()), 3) for at in finished_at),
        round=round_,
        candidate=candidate,
        gain=tuple(None if o is None else float(f"{1 / o:.6g}") for o in objective),
        outcome=kind,
        rejection=tuple(None if w is None else index[w] for w in why),
        reused=reused,
        rejections=tuple(RejectionWords(stage=s, reason=r) for s, r in index),
        next=following_s,
    )
