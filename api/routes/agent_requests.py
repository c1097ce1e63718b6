"""Routes of agents: questions that wait for an external answer, their answers, and the record of every
step."""

import json
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from sqlalchemy.orm import Session

from agents.context import StepContext
from agents.parsing import BadReply
from agents.questions.prompting import posted
from agents.replies.reply_acceptance import accept
from api.requests.posted import Posted
from api.requests.problems import Conflict, responses
from api.routes.dependencies import CurrentDatabase, CurrentNotifier, CurrentSettings, ReadSession
from db.engine import Database
from db.queue.broker import Notifier, relay
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.tables import AgentRequestRow
from db.views.step_facts import step_facts
from warpsmith.errors import InvalidInput
from warpsmith.http_models import (
    NO_NUL,
    AgentReply,
    AgentReplyTaken,
    AgentRequest,
    AgentRequestPage,
    AgentStep,
    AgentStepList,
)
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload

router = APIRouter(prefix="/v1", tags=["agents"])

JobId = Annotated[str, Path(max_length=64, pattern=NO_NUL, description="Id of a job.")]
RequestId = Annotated[str, Path(max_length=64, pattern=NO_NUL, description="Id of a request.")]


@router.get("/agent-requests", responses=responses(422))
def agent_requests(
    session: ReadSession,
    job: Annotated[str | None, Query(max_length=64, pattern=NO_NUL, description="Of this job only.")] = None,
    after: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="`next` of the last page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AgentRequestPage:
    """Questions that wait for an answer, oldest first, each with the JSON schema of the answer."""
    requests = AgentRequestRepository(session)
    if after is not None and not requests.has(after):
        raise InvalidInput(
            "query.after", f"{after!r} is no `next` of a page; leave it out for the first page"
        )
    rows = requests.open(job, after, limit + 1)
    items = tuple(_request(row) for row in rows[:limit])
    return AgentRequestPage(items=items, next=items[-1].id if len(rows) > limit else None)


@router.post("/agent-requests/{request_id}/reply", responses=responses(404, 409, 413, 415, 422))
def reply(
    request_id: RequestId,
    posted: Annotated[Posted[AgentReply], Body()],
    settings: CurrentSettings,
    database: CurrentDatabase,
    notifier: CurrentNotifier,
) -> AgentReplyTaken:
    """Answer a request. An unusable answer is refused with the reason, and the request stays open."""
    body = posted.read()
    text = body.answer if isinstance(body.answer, str) else json.dumps(body.answer, ensure_ascii=False)
    return answer(request_id, text, body.by, settings, database, notifier)


def answer(
    request_id: str, text: str, by: str, settings: Settings, database: Database, notifier: Notifier
) -> AgentReplyTaken:
    """Answer a request with a text.

    Raises:
        Conflict: it is closed.
        InvalidInput: the answer cannot be used; the request stays open.
        NotFound: the tenant has no such request.
    """
    with database.read() as session:
        requests = AgentRequestRepository(session)
        row = requests.get(request_id)
        if not requests.is_open(row):
            raise Conflict(
                f"agent request {request_id} is closed: answered, past its deadline, or its job ended"
            )
        payload = TaskRepository(session).get(row.task_id).payload
        assert isinstance(payload, StepPayload)
        facts = step_facts(session, row.job_id, payload)
    context = StepContext.of(facts, settings.permitted_includes())
    try:
        accept(text, "external", payload, context)
    except BadReply as exc:
        with database.write() as session:
            AgentRequestRepository(session).refuse(request_id, str(exc))
        raise InvalidInput("answer", str(exc)) from exc
    with database.write() as session:
        if not AgentRequestRepository(session).answer(request_id, text, by):
            raise Conflict(f"agent request {request_id} has been answered meanwhile")
    relay(database, notifier)
    return AgentReplyTaken(id=request_id, job=row.job_id)


def open_requests(session: Session, job_id: str) -> tuple[AgentRequest, ...]:
    """Questions of a job that wait for an answer, oldest first."""
    return tuple(_request(row) for row in AgentRequestRepository(session).open(job_id, None, 200))


@router.get("/jobs/{job_id}/agent-steps", responses=responses(404, 422))
def agent_steps(job_id: JobId, session: ReadSession) -> AgentStepList:
    """Questions and answers of agents, their cost, and the steps in which the built-in rules stepped in."""
    return step_list(session, job_id)


def step_list(session: Session, job_id: str) -> AgentStepList:
    """All steps of a job.

    Raises:
        NotFound: no job has that id.
    """
    JobRepository(session).get(job_id)
    return AgentStepList(
        items=tuple(
            AgentStep(
                role=row.role,
                round=row.round,
                provider=row.provider,
                model=row.model,
                fallback=row.fallback,
                notes=tuple(row.notes.splitlines()),
                calls=row.calls,
                tokens=row.tokens,
                cached_tokens=row.cached_tokens,
                written_tokens=row.written_tokens,
                usd=row.usd,
                latency_s=row.latency_s,
                prompt=row.prompt,
                reply=row.reply,
                created_at=row.created_at,
            )
            for row in AgentStepRepository(session).of_job(job_id)
        )
    )


def _request(row: AgentRequestRow) -> AgentRequest:
    return AgentRequest(
        id=row.id,
        job=row.job_id,
        role=row.role,
        round=row.round,
        instructions=row.instructions,
        question=row.question,
        wanted=row.wanted,
        text=posted(row.instructions, row.question, row.wanted),
        refusals=row.refusals,
        last_refusal=row.last_refusal,
        created_at=row.created_at,
        deadline=row.deadline,
    )
