"""Trials: proposed in batches, finished once."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.engine import clock, utc_now
from db.tables import CandidateRow, JobRow, TaskRow, TrialRow, WorkloadRow
from warpsmith.domain.outcome import Measured, Outcome, Rejected
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.domain.state import TaskState, TrialState

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class FinishedTrial:
    """What a slice says about a configuration."""

    configuration: Configuration
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class RejectionGroup:
    """Like rejections of a job, and the first of them."""

    count: int
    first: TrialRow


class TrialRepository:
    """Everything that is asked of the `trial` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def propose(
        self,
        job_id: str,
        candidate_id: str,
        configurations: Sequence[Configuration],
        task_id: str | None = None,
    ) -> None:
        """Remember what is about to run; what is known already stays as it is."""
        if not configurations:
            return
        rows = self._proposals(job_id, candidate_id, configurations, task_id)
        dialect = sqlite if self._session.get_bind().dialect.name == "sqlite" else postgresql
        self._session.execute(dialect.insert(TrialRow).on_conflict_do_nothing(), rows)

    def _proposals(
        self, job_id: str, candidate_id: str, configurations: Sequence[Configuration], task_id: str | None
    ) -> list[dict[str, Any]]:
        count = len(configurations)
        first = (
            self._session.execute(
                update(JobRow)
                .where(JobRow.id == job_id)
                .values(trials_proposed=JobRow.trials_proposed + count)
                .returning(JobRow.trials_proposed)
            ).scalar_one()
            - count
        )
        now = utc_now()
        return [
            {
                "job_id": job_id,
                "candidate_id": candidate_id,
                "number": first + i,
                "configuration": configuration,
                "key": configuration_key(configuration),
                "state": TrialState.PROPOSED,
                "task_id": task_id,
                "created_at": now,
            }
            for i, configuration in enumerate(configurations)
        ]

    def claim(
        self, job_id: str, candidate_id: str, task_id: str, configurations: Sequence[Configuration]
    ) -> list[Configuration]:
        """Propose what no other slice of the candidate has; returns what is this one's now."""
        by_key = {configuration_key(c): c for c in configurations}
        rows = self._proposals(job_id, candidate_id, list(by_key.values()), task_id)
        dialect = sqlite if self._session.get_bind().dialect.name == "sqlite" else postgresql
        insert = dialect.insert(TrialRow).values(rows).on_conflict_do_nothing().returning(TrialRow.key)
        won = set(self._session.scalars(insert))
        return [c for key, c in by_key.items() if key in won]

    def take_leftover(self, job_id: str, candidate_id: str, task_id: str) -> list[Configuration]:
        """Own what was proposed and never finished, unless a slice that is open has it."""
        others = select(TaskRow.id).where(
            TaskRow.job_id == job_id,
            TaskRow.id != task_id,
            TaskRow.state.in_((TaskState.QUEUED, TaskState.RUNNING)),
        )
        taken = self._session.execute(
            update(TrialRow)
            .where(TrialRow.candidate_id == candidate_id, TrialRow.state == TrialState.PROPOSED)
            .where(TrialRow.task_id.is_(None) | TrialRow.task_id.not_in(others))
            .values(task_id=task_id)
            .returning(TrialRow.number, TrialRow.configuration)
        )
        return [row.configuration for row in sorted(taken, key=lambda row: int(row.number))]

    def heard(self, candidate_id: str, task_id: str, since: datetime) -> Sequence[TrialRow]:
        """Trials that other slices of the candidate have finished since then."""
        query = select(TrialRow).where(
            TrialRow.candidate_id == candidate_id,
            TrialRow.state == TrialState.FINISHED,
            TrialRow.finished_at >= since,
            TrialRow.task_id != task_id,
        )
        return self._session.scalars(query.order_by(TrialRow.number)).all()

    def finish(
        self, job_id: str, candidate_id: str, task_id: str | None, trials: Sequence[FinishedTrial]
    ) -> int:
        """Store outcomes of proposed trials; one that is finished already keeps its outcome.

        Counters and the best so far of job, candidate and workloads follow. Returns how many were new.
        """
        # The job's row first, as claims do: two slices would else wait for each other.
        self._session.execute(select(JobRow.id).where(JobRow.id == job_id).with_for_update())
        fresh = [t for t in trials if self._store(candidate_id, task_id, t)]
        if not fresh:
            return 0
        measured = [t.outcome for t in fresh if isinstance(t.outcome, Measured)]
        self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id)
            .values(
                trials_done=JobRow.trials_done + len(fresh),
                trials_rejected=JobRow.trials_rejected + len(fresh) - len(measured),
            )
        )
        candidate = update(CandidateRow).where(CandidateRow.id == candidate_id)
        self._session.execute(candidate.values(trials=CandidateRow.trials + len(fresh)))
        self._count_measured(job_id, candidate_id, fresh)
        return len(fresh)

    def _count_measured(self, job_id: str, candidate_id: str, fresh: Sequence[FinishedTrial]) -> None:
        measured = [t.outcome for t in fresh if isinstance(t.outcome, Measured)]
        if measured:
            candidate = update(CandidateRow).where(CandidateRow.id == candidate_id)
            self._session.execute(candidate.values(measured=CandidateRow.measured + len(measured)))
            best = min(m.objective for m in measured)
            better = CandidateRow.best_objective.is_(None) | (CandidateRow.best_objective > best)
            self._session.execute(candidate.where(better).values(best_objective=best))
            self._improve(job_id, measured)

    def known(self, reuse_key: str, within_s: float, limit: int = 20_000) -> Sequence[TrialRow]:
        """Trials that were run for other candidates with this key, newest first, one a configuration."""
        query = (
            select(TrialRow)
            .join(CandidateRow, CandidateRow.id == TrialRow.candidate_id)
            .where(CandidateRow.reuse_key == reuse_key, TrialRow.state == TrialState.FINISHED)
            .where(~TrialRow.reused, TrialRow.finished_at > utc_now() - timedelta(seconds=within_s))
            .order_by(TrialRow.id.desc())
            .limit(limit)
        )
        found: dict[str, TrialRow] = {}
        for row in self._session.scalars(query):
            found.setdefault(row.key, row)
        return list(found.values())

    def adopt(self, job_id: str, candidate_id: str, trials: Sequence[FinishedTrial]) -> int:
        """Take over outcomes from other jobs; they spend nothing of this one's budget. How many were new."""
        self.propose(job_id, candidate_id, [t.configuration for t in trials])
        fresh = [t for t in trials if self._store(candidate_id, None, t, reused=True)]
        self._count_measured(job_id, candidate_id, fresh)
        return len(fresh)

    def page(self, job_id: str, after: int | None = None, limit: int = 100) -> Sequence[TrialRow]:
        """Trials of a job after the number `after`, in the order of proposal."""
        query = select(TrialRow).where(TrialRow.job_id == job_id).order_by(TrialRow.number).limit(limit)
        if after is not None:
            query = query.where(TrialRow.number > after)
        return self._session.scalars(query).all()

    def finished(self, candidate_id: str) -> Sequence[TrialRow]:
        """Finished trials of a candidate, in the order of proposal."""
        return self._of(candidate_id, TrialState.FINISHED)

    def leftover(self, candidate_id: str) -> Sequence[TrialRow]:
        """Trials that were proposed and never finished."""
        return self._of(candidate_id, TrialState.PROPOSED)

    def measured(self, job_id: str) -> Iterator[TrialRow]:
        """Every trial that passed, best objective first."""
        query = select(TrialRow).where(TrialRow.job_id == job_id, TrialRow.objective.is_not(None))
        query = query.order_by(TrialRow.objective, TrialRow.number).execution_options(yield_per=500)
        yield from self._session.scalars(query)

    def rejections(self, job_id: str, limit: int = 50) -> Sequence[RejectionGroup]:
        """Rejected trials by stage and like reason, most frequent first."""
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

    def _of(self, candidate_id: str, state: TrialState) -> Sequence[TrialRow]:
        query = select(TrialRow).where(TrialRow.candidate_id == candidate_id, TrialRow.state == state)
        return self._session.scalars(query.order_by(TrialRow.number)).all()

    def _store(
        self, candidate_id: str, task_id: str | None, trial: FinishedTrial, reused: bool = False
    ) -> bool:
        outcome = trial.outcome
        rejected = outcome if isinstance(outcome, Rejected) else None
        stored = self._session.execute(
            update(TrialRow)
            .where(
                TrialRow.candidate_id == candidate_id,
                TrialRow.key == configuration_key(trial.configuration),
                TrialRow.state == TrialState.PROPOSED,
            )
            .values(
                state=TrialState.FINISHED,
                outcome=outcome,
                objective=None if rejected else outcome.objective,  # type: ignore[union-attr]
                stage=rejected.stage.value if rejected else None,
                reason_group=_NUMBER.sub("#", rejected.reason)[:200] if rejected else None,
                seconds=trial.seconds,
                task_id=task_id,
                reused=reused,
                finished_at=clock(self._session),
            )
            .returning(TrialRow.id)
        ).scalar_one_or_none()
        return stored is not None

    def _improve(self, job_id: str, measured: Sequence[Measured]) -> None:
        spec = self._session.execute(select(JobRow.spec).where(JobRow.id == job_id)).scalar_one()
        best: dict[str, float] = {}
        for outcome in measured:
            for key, time_us in workload_times_us(outcome, spec.objective.cache.value).items():
                best[key] = min(time_us, best.get(key, time_us))
        for key, time_us in best.items():
            slower = WorkloadRow.best_us.is_(None) | (WorkloadRow.best_us > time_us)
            query = update(WorkloadRow).where(WorkloadRow.job_id == job_id, WorkloadRow.key == key, slower)
            self._session.execute(query.values(best_us=time_us))


def workload_times_us(outcome: Measured, cache: str) -> Mapping[str, float]:
    """Time by workload in one cache state (`cold` or `hot`)."""
    summaries = {t.workload: t.cold if cache == "cold" else t.hot for t in outcome.timings}
    return {key: summary.median_us for key, summary in summaries.items() if summary is not None}
