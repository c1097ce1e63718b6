"""Trials: proposed in batches, finished once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, Table, bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from db.engine import clock, insert_new
from db.tables import CandidateRow, JobRow, TaskRow, TrialRow, WorkloadRow
from warpsmith.domain.state import TaskState, TrialState
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.errors import NotFound
from warpsmith.tuning.objective import steady_times_us

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class TrialResult:
    """A slice's result for a configuration."""

    configuration: Configuration
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class RejectionGroup:
    """Similar rejections of a job, and the first of them."""

    count: int
    first: TrialRow


class TrialRepository:
    """Queries on the `trial` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def propose(
        self,
        job_id: str,
        candidate_id: str,
        configurations: Sequence[Configuration],
        task_id: str | None = None,
    ) -> None:
        """Store configurations that are about to run; known ones are left unchanged."""
        if not configurations:
            return
        first = self.take_numbers(job_id, len(configurations))
        numbers = range(first, first + len(configurations))
        rows = _proposals(job_id, candidate_id, task_id, configurations, numbers)
        insert = insert_new(self._session, TrialRow).values(created_at=clock(self._session))
        self._session.execute(insert, rows)

    def take_numbers(self, job_id: str, count: int) -> int:
        """Reserve this number of trial numbers of a job; returns the first. Unused numbers do no harm."""
        taken = (
            update(JobRow)
            .where(JobRow.id == job_id)
            .values(trials_proposed=JobRow.trials_proposed + count)
            .returning(JobRow.trials_proposed)
        )
        return self._session.execute(taken).scalar_one() - count

    def propose_new(
        self,
        job_id: str,
        candidate_id: str,
        task_id: str | None,
        configurations: Sequence[Configuration],
        numbers: Sequence[int],
    ) -> list[Configuration]:
        """Propose configurations not proposed before; returns them.

        Args:
            task_id: the slice that runs them; None: any slice may claim them.
            numbers: at least one per configuration; see `take_numbers`.
        """
        by_key = {configuration_key(c): c for c in configurations}
        # One order everywhere: otherwise two proposals of the same configurations could deadlock.
        ordered = [by_key[key] for key in sorted(by_key)]
        at = clock(self._session)
        rows = _proposals(job_id, candidate_id, task_id, ordered, numbers)
        stamped = [{**row, "created_at": at} for row in rows]
        insert = insert_new(self._session, TrialRow).values(stamped).returning(TrialRow.key)
        won = set(self._session.scalars(insert))
        return [c for key, c in by_key.items() if key in won]

    def claim_pooled(self, candidate_id: str, task_id: str, count: int) -> list[Configuration]:
        """Claim up to `count` proposals without a slice, oldest first."""
        pool = select(TrialRow.id).where(*_in_pool(candidate_id)).order_by(TrialRow.number).limit(count)
        # A separate query: within the update, Postgres may run it twice and lock more rows than requested.
        ids = self._session.scalars(pool.with_for_update(skip_locked=True)).all()
        if not ids:
            return []
        taken = self._session.execute(
            update(TrialRow)
            .where(TrialRow.id.in_(ids))
            .values(task_id=task_id)
            .returning(TrialRow.number, TrialRow.configuration)
            .execution_options(synchronize_session=False)
        )
        return [row.configuration for row in sorted(taken, key=lambda row: int(row.number))]

    def pooled(self, candidate_id: str) -> int:
        """Number of proposals without a slice."""
        query = select(func.count()).select_from(TrialRow).where(*_in_pool(candidate_id))
        return self._session.execute(query).scalar_one()

    def drop_pooled(self, candidate_id: str) -> None:
        """Delete proposals that nobody will run."""
        self._session.execute(delete(TrialRow).where(*_in_pool(candidate_id)))

    def take_leftover(
        self, job_id: str, candidate_id: str, task_id: str, *, pooled: bool = True
    ) -> list[Configuration]:
        """Claim unfinished proposals, except those of open slices.

        Args:
            pooled: include proposals that no slice ever had.
        """
        others = select(TaskRow.id).where(
            TaskRow.job_id == job_id,
            TaskRow.id != task_id,
            TaskRow.state.in_((TaskState.QUEUED, TaskState.RUNNING)),
        )
        taken = self._session.execute(
            update(TrialRow)
            .where(TrialRow.candidate_id == candidate_id, TrialRow.state == TrialState.PROPOSED)
            .where(_orphaned(others, pooled))
            .values(task_id=task_id)
            .returning(TrialRow.number, TrialRow.configuration)
        )
        return [row.configuration for row in sorted(taken, key=lambda row: int(row.number))]

    def finish(
        self, job_id: str, candidate_id: str, task_id: str | None, trials: Sequence[TrialResult]
    ) -> int:
        """Store outcomes of proposed trials; a finished trial keeps its outcome.

        Also updates counters and the best so far of job, candidate and workloads. Returns the number of new
        outcomes.
        """
        fresh = self._store(candidate_id, task_id, trials)
        if not fresh:
            return 0
        self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id)
            .values(
                trials_done=JobRow.trials_done + len(fresh),
                trials_rejected=JobRow.trials_rejected + sum(isinstance(t.outcome, Rejected) for t in fresh),
            )
        )
        candidate = update(CandidateRow).where(CandidateRow.id == candidate_id)
        self._session.execute(candidate.values(trials=CandidateRow.trials + len(fresh)))
        self._count_measured(job_id, candidate_id, fresh)
        return len(fresh)

    def _count_measured(self, job_id: str, candidate_id: str, fresh: Sequence[TrialResult]) -> None:
        measured = [t.outcome for t in fresh if isinstance(t.outcome, Measured)]
        if measured:
            candidate = update(CandidateRow).where(CandidateRow.id == candidate_id)
            self._session.execute(candidate.values(measured=CandidateRow.measured + len(measured)))
            best = min(m.objective for m in measured)
            better = CandidateRow.best_objective.is_(None) | (CandidateRow.best_objective > best)
            self._session.execute(candidate.where(better).values(best_objective=best))
            self._improve(job_id, measured)

    def known(self, reuse_key: str, within_s: float, limit: int = 20_000) -> Sequence[TrialRow]:
        """Trials run for other candidates with this key, newest first, one per configuration."""
        query = (
            select(TrialRow)
            .join(CandidateRow, CandidateRow.id == TrialRow.candidate_id)
            .where(CandidateRow.reuse_key == reuse_key, TrialRow.state == TrialState.FINISHED)
            .where(~TrialRow.reused, TrialRow.finished_at > clock(self._session, -within_s))
            .where(~is_cut_short())
            .order_by(TrialRow.id.desc())
            .limit(limit)
        )
        found: dict[str, TrialRow] = {}
        for row in self._session.scalars(query):
            found.setdefault(row.key, row)
        return list(found.values())

    def adopt(self, job_id: str, candidate_id: str, trials: Sequence[TrialResult]) -> int:
        """Take over outcomes from other jobs, without cost to this job's budget; returns the number of new
        ones."""
        self.propose(job_id, candidate_id, [t.configuration for t in trials])
        fresh = self._store(candidate_id, None, trials, reused=True)
        self._count_measured(job_id, candidate_id, fresh)
        return len(fresh)

    def page(self, job_id: str, after: int | None = None, limit: int = 100) -> Sequence[TrialRow]:
        """Trials of a job after the number `after`, in the order of proposal."""
        query = select(TrialRow).where(TrialRow.job_id == job_id).order_by(TrialRow.number).limit(limit)
        if after is not None:
            query = query.where(TrialRow.number > after)
        return self._session.scalars(query).all()

    def has(self, job_id: str, number: int) -> bool:
        """True if the job has a trial of that number."""
        query = select(TrialRow.number).where(TrialRow.job_id == job_id, TrialRow.number == number)
        return self._session.execute(query).first() is not None

    def get(self, job_id: str, number: int) -> TrialRow:
        """The trial of that number.

        Raises:
            NotFound: the job has none.
        """
        query = select(TrialRow).where(TrialRow.job_id == job_id, TrialRow.number == number)
        row = self._session.scalars(query).one_or_none()
        if row is None:
            raise NotFound(f"no trial {number} of job {job_id}")
        return row

    def finished(self, candidate_id: str) -> Sequence[TrialRow]:
        """Finished trials of a candidate, in the order of proposal."""
        query = select(TrialRow).where(TrialRow.candidate_id == candidate_id)
        query = query.where(TrialRow.state == TrialState.FINISHED).order_by(TrialRow.number)
        return self._session.scalars(query).all()

    def measured(self, job_id: str) -> Iterator[TrialRow]:
        """Every trial that passed, best objective first."""
        query = select(TrialRow).where(TrialRow.job_id == job_id, TrialRow.objective.is_not(None))
        query = query.order_by(TrialRow.objective, TrialRow.number).execution_options(yield_per=500)
        yield from self._session.scalars(query)

    def best(self, candidate_id: str) -> TrialRow | None:
        """The trial of a candidate with the best objective; None if none was measured."""
        query = select(TrialRow).where(TrialRow.candidate_id == candidate_id, TrialRow.objective.is_not(None))
        return self._session.scalars(query.order_by(TrialRow.objective, TrialRow.number).limit(1)).first()

    def cut_short(self, job_id: str) -> int:
        """Number of trials that were pruned."""
        query = select(func.count()).select_from(TrialRow)
        return self._session.execute(query.where(TrialRow.job_id == job_id, is_cut_short())).scalar_one()

    def reused(self, job_id: str) -> int:
        """Number of results of earlier jobs that a job took over."""
        query = select(func.count()).select_from(TrialRow)
        return self._session.execute(query.where(TrialRow.job_id == job_id, TrialRow.reused)).scalar_one()

    def rejections(self, job_id: str, limit: int = 50) -> Sequence[RejectionGroup]:
        """Rejected trials by stage and similar reason, most frequent first."""
        count, first = func.count().label("count"), func.min(TrialRow.id).label("first")
        groups = (
            select(count, first)
            .where(TrialRow.job_id == job_id, TrialRow.stage.is_not(None), ~TrialRow.reused)
            .group_by(TrialRow.stage, TrialRow.reason_group)
            .order_by(count.desc(), first)
            .limit(limit)
            .subquery()
        )
        query = select(groups.c.count, TrialRow).join(groups, groups.c.first == TrialRow.id)
        query = query.order_by(groups.c.count.desc(), groups.c.first)
        return [RejectionGroup(row[0], row[1]) for row in self._session.execute(query)]

    def _store(
        self,
        candidate_id: str,
        task_id: str | None,
        trials: Sequence[TrialResult],
        reused: bool = False,
    ) -> list[TrialResult]:
        """Finish trials that are still proposed; returns them."""
        by_key = {configuration_key(t.configuration): t for t in reversed(trials)}
        open_ = (
            select(TrialRow.id, TrialRow.key)
            .where(TrialRow.candidate_id == candidate_id, TrialRow.key.in_(list(by_key)))
            .where(TrialRow.state == TrialState.PROPOSED)
        )
        rows = self._session.execute(open_.order_by(TrialRow.key).with_for_update()).all()
        if not rows:
            return []
        values = [
            {"row": row.id, **_values(by_key[row.key]), "task_id": task_id, "reused": reused} for row in rows
        ]
        table = cast(Table, TrialRow.__table__)
        query = update(table).where(table.c.id == bindparam("row"))
        query = query.values(state=TrialState.FINISHED, finished_at=clock(self._session))
        # One call for many rows: the driver sends them together.
        self._session.connection().execute(query, values)
        stored = {row.key for row in rows}
        return [t for key, t in by_key.items() if key in stored]

    def _improve(self, job_id: str, measured: Sequence[Measured]) -> None:
        spec = self._session.execute(select(JobRow.spec).where(JobRow.id == job_id)).scalar_one()
        best: dict[str, float] = {}
        for outcome in measured:
            for key, us in steady_times_us(spec, outcome).items():
                best[key] = min(us, best.get(key, us))
        for key, us in best.items():
            slower = WorkloadRow.best_us.is_(None) | (WorkloadRow.best_us > us)
            query = update(WorkloadRow).where(WorkloadRow.job_id == job_id, WorkloadRow.key == key, slower)
            self._session.execute(query.values(best_us=us))


def is_cut_short() -> ColumnElement[bool]:
    """Condition: finished without having run on all workloads, because it was hopeless."""
    return TrialRow.outcome_kind == "cut_short"


def _in_pool(candidate_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        TrialRow.candidate_id == candidate_id,
        TrialRow.state == TrialState.PROPOSED,
        TrialRow.task_id.is_(None),
    )


def _orphaned(open_tasks: Select[str], pooled: bool) -> ColumnElement[bool]:
    of_none_open = TrialRow.task_id.not_in(open_tasks)
    return TrialRow.task_id.is_(None) | of_none_open if pooled else of_none_open


def _proposals(
    job_id: str,
    candidate_id: str,
    task_id: str | None,
    configurations: Sequence[Configuration],
    numbers: Sequence[int],
) -> list[dict[str, Any]]:
    return [
        {
            "job_id": job_id,
            "candidate_id": candidate_id,
            "number": number,
            "configuration": configuration,
            "key": configuration_key(configuration),
            "state": TrialState.PROPOSED,
            "task_id": task_id,
        }
        for number, configuration in zip(numbers, configurations, strict=False)
    ]


def _values(trial: TrialResult) -> dict[str, Any]:
    """Column values of an outcome."""
    outcome = trial.outcome
    return {
        "outcome": outcome,
        "outcome_kind": outcome.kind,
        "objective": outcome.objective if isinstance(outcome, Measured) else None,
        "stage": outcome.stage.value if isinstance(outcome, Rejected) else None,
        "reason_group": _NUMBER.sub("#", outcome.reason)[:200] if isinstance(outcome, Rejected) else None,
        "seconds": trial.seconds,
    }
