"""Facts about a job's kernel and its search, while it runs and afterwards."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.snapshot import job_baseline
from db.tables import CandidateRow
from warpsmith.domain.job import Job
from warpsmith.tuning.analysis.search_facts import Facts, facts_of
from warpsmith.tuning.tasks import BaselineResult


def job_facts(session: Session, job_id: str) -> Facts | None:
    """What bounds a job's kernel, and which parameters matter, so far; None before the baseline.

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
    known = [(c.best_objective, c.number, c) for c in candidates if c.best_objective is not None]
    if not known:
        return facts_of(job, baseline)
    best = min(known, key=lambda entry: entry[:2])[2]
    rows = TrialRepository(session).finished(best.id)
    trials = [(t.configuration, t.outcome) for t in rows if t.outcome is not None]
    return facts_of(job, baseline, best.template, trials)
