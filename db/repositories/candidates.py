"""Candidates: templates with their provenance."""

from collections.abc import Sequence

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session, undefer

from db.engine import clock
from db.identifiers import new_id
from db.repositories.events import EventRepository
from db.tables import CandidateRow, TaskRow
from warpsmith.domain.state import CandidateState, TaskKind, TaskState
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.domain.templates.template import Template
from warpsmith.errors import NotFound
from warpsmith.tuning.tasks import SlicePayload


class CandidateRepository:
    """Queries on the `candidate` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(
        self,
        job_id: str,
        number: int,
        round_: int,
        parent: str | None,
        template: Template,
        declined: tuple[DeclinedRule, ...],
        made_by: str,
    ) -> CandidateRow:
        """A new candidate, open for search."""
        row = CandidateRow(
            id=new_id(),
            job_id=job_id,
            number=number,
            round=round_,
            parent=parent,
            state=CandidateState.SEARCHING,
            template=template,
            declined=declined,
            made_by=made_by,
            trials=0,
            measured=0,
            created_at=clock(self._session),
        )
        self._session.add(row)
        self._session.flush()
        EventRepository(self._session).add(
            job_id, "candidate", {"id": row.id, "number": number, "round": round_}
        )
        return row

    def get(self, candidate_id: str) -> CandidateRow:
        """Return a candidate with its template.

        Raises:
            NotFound: no candidate has that id.
        """
        options = [undefer(CandidateRow.template)]
        row = self._session.get(CandidateRow, candidate_id, options=options, populate_existing=True)
        if row is None:
            raise NotFound(f"no candidate {candidate_id}")
        return row

    def of_job(self, job_id: str, *, with_templates: bool = False) -> Sequence[CandidateRow]:
        """All candidates of a job, in order."""
        query = select(CandidateRow).where(CandidateRow.job_id == job_id).order_by(CandidateRow.number)
        if with_templates:
            query = query.options(undefer(CandidateRow.template))
        return self._session.scalars(query.execution_options(populate_existing=True)).all()

    def best_objective(self, job_id: str) -> float | None:
        """The best objective of any candidate of a job that is not rejected; None if none was measured."""
        query = select(func.min(CandidateRow.best_objective)).where(CandidateRow.job_id == job_id)
        return self._session.scalar(query.where(CandidateRow.state != CandidateState.REJECTED))

    def set_state(self, candidate_id: str, state: CandidateState) -> bool:
        """Move a candidate; False if it already has that state."""
        changed = self._session.execute(
            update(CandidateRow)
            .where(CandidateRow.id == candidate_id, CandidateRow.state != state)
            .values(state=state)
            .returning(CandidateRow.job_id)
        ).scalar_one_or_none()
        if changed is None:
            return False
        EventRepository(self._session).add(changed, "candidate", {"id": candidate_id, "state": state.value})
        return True

    def set_reuse_key(self, candidate_id: str, key: str) -> None:
        """Set the key of candidates that share their trials."""
        query = update(CandidateRow).where(CandidateRow.id == candidate_id)
        self._session.execute(query.values(reuse_key=key))

    def set_feasible(self, candidate_id: str, feasible: int) -> None:
        """The number of feasible configurations; a lower bound if a part of them is searched."""
        query = update(CandidateRow).where(CandidateRow.id == candidate_id)
        self._session.execute(query.values(feasible=feasible))

    def settle(self, candidate_id: str, trials: int | None) -> None:
        """Record that a shared search proposes nothing more.

        Args:
            trials: total number of trials of the candidate, if all are proposed; None: the searcher is
                exhausted.
        """
        query = update(CandidateRow).where(CandidateRow.id == candidate_id)
        if trials is None:
            query = query.values(exhausted=True)
        else:
            fewer = CandidateRow.settled.is_(None) | (CandidateRow.settled < trials)
            query = query.values(settled=case((fewer, trials), else_=CandidateRow.settled))
        job_id = self._session.execute(query.returning(CandidateRow.job_id)).scalar_one()
        said = {"candidate": candidate_id, "trials": trials}
        EventRepository(self._session).add(job_id, "settled", said)

    def settled(self, candidate_id: str) -> tuple[int | None, bool]:
        """The total number of trials that a shared search has proposed, and whether its searcher is
        exhausted."""
        query = select(CandidateRow.settled, CandidateRow.exhausted).where(CandidateRow.id == candidate_id)
        row = self._session.execute(query).one()
        return row.settled, row.exhausted

    def running_slices(self, job_id: str, candidate_id: str) -> int:
        """Number of running slices of a candidate."""
        query = select(TaskRow.payload).where(TaskRow.job_id == job_id, TaskRow.state == TaskState.RUNNING)
        payloads = self._session.scalars(query.where(TaskRow.kind == TaskKind.SLICE))
        return sum(isinstance(p, SlicePayload) and p.candidate == candidate_id for p in payloads)
