"""Usage that counts against limits when a job is submitted: open jobs, and jobs accepted recently."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db.engine import now
from db.job_clock import elapsed_s
from db.repositories.jobs import OPEN_JOB_STATES
from db.tables import JobRow

DAY_S = 86400.0
MINUTE_S = 60.0
_LOCK = 0x77617271
"""Advisory lock, so that two concurrent submissions do not both take the last place."""


@dataclass(frozen=True)
class Used:
    """Usage by the jobs of one key."""

    submitted: int
    """Jobs submitted in the last minute."""
    open: int
    device_s: float
    """Seconds of jobs submitted in the last day: granted ones while open, or used ones if these are more."""
    usd: float


class Admission:
    """Figures over the `job` table; needs a session that is bound to no tenant."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lock(self) -> None:
        """Make other submissions wait until this transaction ends; SQLite has one writer anyway."""
        if self._session.get_bind().dialect.name == "postgresql":
            self._session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})

    def open_jobs(self) -> int:
        """Number of open jobs of all tenants."""
        query = select(func.count()).where(JobRow.state.in_(OPEN_JOB_STATES))
        return self._session.execute(query).scalar_one()

    def used_by(self, key: str) -> Used:
        """Usage of one key."""
        at = now(self._session)
        query = select(
            JobRow.state,
            JobRow.created_at,
            JobRow.started_at,
            JobRow.finished_at,
            JobRow.waiting_since,
            JobRow.waited_s,
            JobRow.counted_at,
            JobRow.budget_s,
            JobRow.budget_usd,
            JobRow.usd_used,
        )
        recent = JobRow.created_at > at - timedelta(seconds=DAY_S)
        submitted = opened = 0
        device_s = usd = 0.0
        for row in self._session.execute(
            query.where(JobRow.api_key == key, recent | JobRow.state.in_(OPEN_JOB_STATES))
        ):
            age_s = (at - row.created_at).total_seconds()
            is_open = not row.state.is_terminal
            submitted += age_s < MINUTE_S
            opened += is_open
            if age_s < DAY_S:
                took_s = elapsed_s(row, at)
                device_s += max(row.budget_s, took_s) if is_open else took_s
                usd += max(row.usd_used, row.budget_usd) if is_open else row.usd_used
        return Used(submitted, opened, device_s, usd)
