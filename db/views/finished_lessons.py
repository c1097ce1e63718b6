"""Makes a lesson from the rows of a finished job."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.memory.lessons import LessonRepository
from db.repositories.memory.registry import RegistryRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TaskRow
from db.views.snapshot import job_baseline
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import configuration_key
from warpsmith.tuning.analysis.search_facts import facts_of
from warpsmith.tuning.decisions.task_history import ideas_in
from warpsmith.tuning.decisions.withdrawals import rejections_in, standing, verifications
from warpsmith.tuning.lessons.lesson import MOST_BEST, MOST_TRIED, Attempt, Lesson, Served
from warpsmith.tuning.tasks import VerifyResult


def learn(session: Session, job_id: str) -> bool:
    """Keep what a finished job taught and what serves its workloads; False if it taught nothing: it did not
    end well, or ran on recorded timings.

    Raises:
        NotFound: no job has that id.
    """
    row = JobRepository(session).get(job_id, with_spec=True)
    baseline = job_baseline(session, job_id)
    if row.state is not JobState.DONE or baseline is None or baseline.refused or row.device_class is None:
        return False
    tasks = TaskRepository(session).of_job(job_id)
    verified = standing(verifications(tasks))
    candidates = _best_first(CandidateRepository(session).of_job(job_id, with_templates=True), verified)
    places = {c.id: place for place, c in enumerate(candidates)}
    choices = () if verified is None else verified.choices
    lesson = Lesson(
        job=row.spec,
        device=baseline.device,
        device_class=row.device_class,
        speedup=1.0 if verified is None else verified.speedup,
        attempts=_attempts(session, candidates, tasks),
        served=tuple(
            Served(
                workload=choice.workload,
                attempt=places.get(choice.candidate or ""),
                configuration=choice.configuration or {},
                speedup=choice.speedups.get(choice.workload, 1.0),
            )
            for choice in choices
        ),
        bounds=tuple(w.floor_bound for w in facts_of(row.spec, baseline).baseline.workloads),
    )
    LessonRepository(session).add(job_id, row.tenant, lesson)
    RegistryRepository(session).add(job_id, row.tenant, lesson)
    return True


def _best_first(rows: Sequence[CandidateRow], verified: VerifyResult | None) -> list[CandidateRow]:
    """Candidates that are kept: those that serve, those that gained most, those that failed last."""
    serving = {choice.candidate for choice in verified.choices} if verified is not None else set()
    ordered = sorted(
        rows,
        key=lambda c: (c.id not in serving, c.best_objective is None, c.best_objective or 0.0, -c.number),
    )
    return ordered[: max(MOST_TRIED, len(serving - {None}))]


def _attempts(
    session: Session, candidates: Sequence[CandidateRow], tasks: Sequence[TaskRow]
) -> tuple[Attempt, ...]:
    ideas = ideas_in(tasks)
    reasons = rejections_in(tasks)
    found = []
    for row in candidates:
        trials = TrialRepository(session).finished(row.id)
        measured = {
            configuration_key(t.configuration): (t.configuration, t.outcome.objective)
            for t in trials
            if isinstance(t.outcome, Measured)
        }
        found.append(
            Attempt(
                template=row.template,
                trials=len(trials),
                objective=row.best_objective,
                best=tuple(sorted(measured.values(), key=lambda pair: pair[1])[:MOST_BEST]),
                rejected=reasons.get(row.id, ""),
                idea=ideas.get(row.made_by, ""),
            )
        )
    return tuple(found)
