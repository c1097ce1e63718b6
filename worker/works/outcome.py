"""Outcome of an attempt at a task, and the baseline that all kinds of work read first."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from db.repositories.jobs import JobRepository
from db.tables import TaskRow
from db.views.snapshot import job_baseline
from warpsmith.domain.jobs.job import Job
from warpsmith.tuning.tasks import JobBaseline, Result


def _nothing(session: Session) -> None:
    """Effects of a task without any."""


@dataclass(frozen=True)
class Done:
    """The result of a task, and its effects in the transaction that stores it."""

    result: Result | None
    """Result of the task; None: the worker stops before the end, and the task goes back to its queue."""
    effects: Callable[[Session], None] = _nothing


@dataclass(frozen=True)
class Deferred:
    """Task that waits for an external event, until a time."""

    until: datetime
    post: Callable[[Session], datetime | None]
    """Part of the transaction that defers the task; returns the end of the wait, None to continue at once."""


def job_of(session: Session, row: TaskRow) -> Job:
    """The job of a task."""
    return JobRepository(session).get(row.job_id, with_spec=True).spec


def baseline_of(session: Session, row: TaskRow) -> JobBaseline:
    """Results of the user's kernel from all tasks; its baseline must have been measured."""
    found = job_baseline(session, row.job_id)
    assert found is not None, "decide starts with the baseline"
    return found
