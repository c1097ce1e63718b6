"""Results of a search, in the form told to its searcher."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from db.repositories.trials import is_cut_short
from db.tables import TrialRow
from warpsmith.domain.state import TrialState
from warpsmith.domain.templates.outcome import Measured, told
from warpsmith.domain.templates.space import Configuration

Told = tuple[Configuration, float | None]
"""A configuration and its objective, or its estimate if it was pruned; None: it was rejected."""


@dataclass(frozen=True)
class FinishedCounts:
    """Numbers of finished trials of a candidate."""

    all: int
    run: int
    """Trials not taken over from earlier jobs."""
    of_task: int


class HistoryRepository:
    """Reads the columns of the `trial` table that a search needs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def count_finished(self, candidate_id: str, task_id: str) -> FinishedCounts:
        """Finished trials of a candidate, and of one of its slices."""
        every = func.count(TrialRow.id)
        query = select(
            every, every.filter(~TrialRow.reused), every.filter(TrialRow.task_id == task_id)
        ).where(TrialRow.candidate_id == candidate_id, TrialRow.state == TrialState.FINISHED)
        return FinishedCounts(*self._session.execute(query).one())

    def of(self, candidate_id: str) -> list[Told]:
        """All finished trials of a candidate, in the order of proposal."""
        return self._told(TrialRow.candidate_id == candidate_id, TrialRow.state == TrialState.FINISHED)

    def measured(self, candidate_id: str, most: int) -> list[Measured]:
        """Outcomes of the latest trials of a candidate that this job ran on all workloads, latest last."""
        query = (
            select(TrialRow.outcome)
            .where(TrialRow.candidate_id == candidate_id, TrialRow.objective.is_not(None), ~TrialRow.reused)
            .order_by(TrialRow.number.desc())
            .limit(most)
        )
        return [o for o in reversed(self._session.scalars(query).all()) if isinstance(o, Measured)]

    def counted(self, candidate_id: str) -> int:
        """Number of a candidate's trials that count against its budget, proposed ones included."""
        query = select(func.count(TrialRow.id)).where(TrialRow.candidate_id == candidate_id, ~TrialRow.reused)
        return self._session.execute(query).scalar_one()

    def finished_since(self, candidate_id: str, task_id: str, since: datetime) -> Sequence[int]:
        """Ids of trials that other slices of the candidate have finished since then."""
        query = select(TrialRow.id).where(
            TrialRow.candidate_id == candidate_id,
            TrialRow.state == TrialState.FINISHED,
            TrialRow.finished_at >= since,
            TrialRow.task_id != task_id,
        )
        return self._session.scalars(query).all()

    def results(self, ids: Sequence[int]) -> list[Told]:
        """Configurations and objectives of these trials, in the order of proposal."""
        if not ids:
            return []
        return self._told(TrialRow.id.in_(ids))

    def _told(self, *which: ColumnElement[bool]) -> list[Told]:
        # Outcomes are long, and only those of pruned trials are needed.
        outcome = case((is_cut_short(), TrialRow.outcome), else_=None)
        query = select(TrialRow.configuration, TrialRow.objective, outcome).where(*which)
        rows = self._session.execute(query.order_by(TrialRow.number))
        return [(row[0], row[1] if row[2] is None else told(row[2])) for row in rows]
