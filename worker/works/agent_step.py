"""The task `agent_step`: a question to an agent."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from agents.context import StepContext
from agents.providers.external import NotYet, PostedQuestion
from agents.providers.model_budget import Cost
from agents.providers.steps import Panel, run_step
from db.engine import now
from db.queue.lease import Lease
from db.repositories.agent_requests import OPEN, AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.candidates import CandidateRepository
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.tables import TaskRow
from db.views.earlier_lessons import earlier_lessons
from db.views.snapshot import elapsed_s
from db.views.step_facts import step_facts
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.decisions.time_budget import search_s
from warpsmith.tuning.step_facts import Earlier
from warpsmith.tuning.tasks import StepPayload, StepResult
from worker.device.process_context import Context
from worker.works.outcome import Deferred, Done
from worker.works.step_ports import JobPurse, StepMailbox

STEP_SHARE = 0.5
"""Share of the seconds a job has left that one agent step may take."""


def agent_step(context: Context, row: TaskRow, lease: Lease) -> Done | Deferred:
    """Ask an agent; a step that waits for an external answer is deferred."""
    payload = row.payload
    assert isinstance(payload, StepPayload)
    with context.database.read() as session:
        earlier = _earlier(context, session, row.job_id, payload)
        facts = step_facts(session, row.job_id, payload, earlier=earlier)
        elapsed = elapsed_s(session, JobRepository(session).get(row.job_id))
        best = CandidateRepository(session).best_objective(row.job_id)
    PROGRESS.at(f"{payload.role}: round {payload.round}")
    asked = StepContext.of(facts, context.settings.permitted_includes())
    seconds = max(1.0, search_s(facts.job, facts.baseline, best, elapsed) * STEP_SHARE)
    purse = JobPurse(context.database, row.job_id)
    mailbox = StepMailbox(context.database, row.id)
    try:
        panel = Panel(context.settings, purse, mailbox, seconds, lease.alive)
        result = run_step(payload, asked, panel)
    except NotYet as exc:
        return _deferred(context, row, payload, exc.asked)
    if result.fallback and lease.stopping:
        return Done(None)
    result = result.model_copy(update={"earlier": tuple(e.job_id for e in earlier)})
    spent = Cost(result.tokens, result.usd) - purse.booked
    return Done(result, lambda session: _record(session, row, payload, result, spent))


def _earlier(context: Context, session: Session, job_id: str, payload: StepPayload) -> Sequence[Earlier]:
    settings = context.settings
    return earlier_lessons(session, job_id, payload, settings.shares_lessons) if settings.remembers else ()


def _deferred(context: Context, row: TaskRow, payload: StepPayload, question: PostedQuestion) -> Deferred:
    with context.database.read() as session:
        until = now(session) + timedelta(seconds=context.settings.agent_external_timeout_s)
    return Deferred(until, lambda session: _post(session, row, payload, question, until))


def _record(session: Session, row: TaskRow, payload: StepPayload, result: StepResult, unbooked: Cost) -> None:
    WaitRepository(session).end(row.job_id, row.id)
    AgentStepRepository(session).add(row.job_id, row.id, payload, result)
    JobRepository(session).spend(row.job_id, unbooked.tokens, unbooked.usd)


def _post(
    session: Session, row: TaskRow, payload: StepPayload, asked: PostedQuestion, until: datetime
) -> datetime | None:
    """Make the request if there is none; until when to wait, None if the answer has just come."""
    requests = AgentRequestRepository(session)
    request = requests.of_task(row.id, lock=True)
    if request is None:
        words = (payload.role, payload.round, asked.instructions, asked.question, asked.wanted, until)
        request = requests.add(row, *words)
        # Nobody works on the job meanwhile, so its budget does not pay for it.
        WaitRepository(session).begin(row.job_id)
        JobRepository(session).set_detail(row.job_id, f"waiting for an answer to agent request {request.id}")
    return request.deadline if request.state == OPEN else None
