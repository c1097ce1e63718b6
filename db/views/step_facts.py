"""Input of an agent step, read from the rows of its job."""

from collections.abc import Sequence, Set

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TaskRow, TrialRow
from db.views.snapshot import job_baseline
from warpsmith.domain.templates.outcome import Outcome, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.analysis.search_facts import best_of
from warpsmith.tuning.decisions.task_history import ideas_in
from warpsmith.tuning.decisions.withdrawals import fault_of, rejections_in
from warpsmith.tuning.step_facts import AgentTurn, Earlier, StepFacts, Tried
from warpsmith.tuning.tasks import (
    StepPayload,
    StepResult,
    ToolAnswer,
    ToolPayload,
    ToolResult,
)

GIVEN_UP = ToolAnswer(text="the tool could not be used: the workers that tried were lost", ok=False)


def step_facts(
    session: Session,
    job_id: str,
    payload: StepPayload,
    before: int | None = None,
    earlier: Sequence[Earlier] = (),
) -> StepFacts:
    """The facts of a step.

    Args:
        earlier: lessons of earlier jobs that the step is told of.
        before: number of the step's task, for a past step; results of later tasks are left out.

    Raises:
        NotFound: the job or the candidate does not exist.
    """
    candidates, trials = CandidateRepository(session), TrialRepository(session)
    parent = None if payload.parent is None else candidates.get(payload.parent)
    rejected = None if payload.rejected is None else candidates.get(payload.rejected)
    history = payload.tools > 0 or payload.ideas > 1
    wanted = before is not None or history or payload.rejected
    tasks = TaskRepository(session).of_job(job_id) if wanted else ()
    later = {t.id for t in tasks if before is not None and t.number >= before}
    return StepFacts(
        job=JobRepository(session).get(job_id, with_spec=True).spec,
        parent=None if parent is None else parent.template,
        trials=[] if parent is None else _outcomes(trials.finished(parent.id), later),
        baseline=job_baseline(session, job_id, before),
        rejected=None if rejected is None else rejected.template,
        log=_log(session, rejected, tasks, later),
        turns=_turns(session, job_id, payload),
        tried=_tried(session, job_id, tasks, later) if history else (),
        earlier=earlier,
    )


def _outcomes(trials: Sequence[TrialRow], later: Set[str]) -> list[tuple[Configuration, Outcome]]:
    """Configurations and outcomes of finished trials, without those of later tasks."""
    return [(t.configuration, t.outcome) for t in trials if t.outcome is not None and t.task_id not in later]


def _log(session: Session, rejected: CandidateRow | None, tasks: Sequence[TaskRow], later: Set[str]) -> str:
    """Log of the fault for which a candidate was withdrawn, else of its first rejected trial; else empty."""
    if rejected is None:
        return ""
    fallen = fault_of([t for t in tasks if t.id not in later], rejected.id)
    if fallen is not None:
        return fallen.log
    trials = TrialRepository(session).finished(rejected.id)
    return next((t.outcome.log for t in trials if isinstance(t.outcome, Rejected)), "")


def _tried(session: Session, job_id: str, tasks: Sequence[TaskRow], later: Set[str]) -> list[Tried]:
    """Candidates of a job, without what later tasks made or found."""
    reasons = rejections_in([t for t in tasks if t.id not in later])
    ideas = ideas_in(tasks)
    found = []
    for row in CandidateRepository(session).of_job(job_id, with_templates=True):
        if row.made_by in later:
            continue
        trials = _outcomes(TrialRepository(session).finished(row.id), later)
        best = best_of(trials)
        found.append(
            Tried(
                number=row.number,
                round=row.round,
                template=row.template,
                trials=len(trials),
                best_objective=None if best is None else best[1].objective,
                best=None if best is None else best[0],
                rejected=reasons.get(row.id, ""),
                idea=ideas.get(row.made_by, ""),
            )
        )
    return found


def _turns(session: Session, job_id: str, payload: StepPayload) -> list[AgentTurn]:
    """Earlier turns of a step's conversation. A tool whose task was given up says so."""
    if not payload.first_turn:
        return []
    tasks = TaskRepository(session).of_job(job_id)
    said = {
        t.payload.step: t.result.answers if isinstance(t.result, ToolResult) else {}
        for t in tasks
        if isinstance(t.payload, ToolPayload)
    }
    found = []
    for task in tasks:
        if not isinstance(task.payload, StepPayload) or not isinstance(task.result, StepResult):
            continue
        if payload.first_turn not in (task.id, task.payload.first_turn) or not task.result.tool_calls:
            continue
        calls, answers = task.result.tool_calls, said.get(task.id, {})
        answered = [c.answer or answers.get(c.id) or GIVEN_UP for c in calls]
        found.append(AgentTurn(task.result.reply, calls, answered))
    return found[: payload.turn]
