"""Facts about a job's kernel and its search, while it runs and afterwards."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.tables import CandidateRow, TrialRow
from db.views.snapshot import job_baseline
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import CandidateState
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.analysis.search_facts import Facts, facts_of
from warpsmith.tuning.tasks import BaselineResult


def job_facts(session: Session, job_id: str) -> Facts | None:
    """Bounds of a job's kernel and importance of its parameters, so far; None before the baseline.

    Raises:
        NotFound: no job has that id.
    """
    row = JobRepository(session).get(job_id, with_spec=True)
    candidates = CandidateRepository(session).of_job(job_id, with_templates=True)
    return facts_so_far(session, row.spec, job_baseline(session, job_id), candidates)


def facts_so_far(
    session: Session, job: Job, baseline: BaselineResult | None, candidates: Sequence[CandidateRow]
) -> Facts | None:
    """`job_facts` of what was read already; the candidates have their templates."""
    if baseline is None or baseline.refused:
        return None
    kept = [c for c in candidates if c.state is not CandidateState.REJECTED]
    known = [(c.best_objective, c.number, c) for c in kept if c.best_objective is not None]
    if not known:
        return facts_of(job, baseline)
    best = min(known, key=lambda entry: entry[:2])[2]
    return facts_of(job, baseline, best.template, _trials(session, best.id))


def _trials(session: Session, candidate_id: str) -> list[tuple[Configuration, Outcome]]:
    """Finished trials of a candidate, of which only the best has its timings.

    The facts need no others, and to read those of 10,000 trials takes seconds.
    """
    table = TrialRow.__table__
    columns = table.c.id, table.c.configuration, table.c.outcome_kind, table.c.objective, table.c.stage
    query = select(*columns).where(table.c.candidate_id == candidate_id, table.c.outcome_kind.is_not(None))
    rows = session.execute(query.order_by(table.c.number)).all()
    best = min((r for r in rows if r.objective is not None), key=lambda r: r.objective, default=None)
    found = []
    for row in rows:
        whole = row is best
        outcome = session.get_one(TrialRow, row.id).outcome if whole else _light(row)
        assert outcome is not None
        found.append((row.configuration, outcome))
    return found


def _light(row: Any) -> Outcome:
    if row.outcome_kind == "measured":
        return Measured(timings=(), objective=row.objective)
    if row.outcome_kind == "cut_short":
        return CutShort(timings=(), skipped=(), estimate=1.0)
    return Rejected(stage=Stage(row.stage), reason="")
