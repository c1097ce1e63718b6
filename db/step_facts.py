"""Input of an agent step, read from the rows of its job."""

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.snapshot import job_baseline
from warpsmith.domain.outcome import Rejected
from warpsmith.tuning.step_facts import StepFacts
from warpsmith.tuning.tasks import StepPayload


def step_facts(session: Session, job_id: str, payload: StepPayload, before: int | None = None) -> StepFacts:
    """The facts of a step.

    Args:
        before: number of the step's task, for a past step; results of later tasks are left out.

    Raises:
        NotFound: the job or the candidate does not exist.
    """
    candidates, trials = CandidateRepository(session), TrialRepository(session)
    parent = None if payload.parent is None else candidates.get(payload.parent)
    rejected = None if payload.rejected is None else candidates.get(payload.rejected)
    later: set[str | None] = set()
    if before is not None:
        later = {t.id for t in TaskRepository(session).of_job(job_id) if t.number >= before}
    failed = [] if rejected is None else trials.finished(rejected.id)
    logs = [t.outcome.log for t in failed if isinstance(t.outcome, Rejected)]
    return StepFacts(
        job=JobRepository(session).get(job_id, with_spec=True).spec,
        parent=None if parent is None else parent.template,
        trials=[]
        if parent is None
        else [
            (t.configuration, t.outcome)
            for t in trials.finished(parent.id)
            if t.outcome is not None and t.task_id not in later
        ],
        baseline=job_baseline(session, job_id, before),
        rejected=None if rejected is None else rejected.template,
        log=logs[0] if logs else "",
    )
