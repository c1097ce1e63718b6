"""The agents of a job: open questions, which are answered here, and every step with its prompt and reply."""

import json

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from api.pages.job_heading import heading
from api.pages.rendering import page, page_router
from api.pages.sign_in import read_form
from api.requests.auth import allow
from api.requests.limits import MAX_BODY_BYTES
from api.routes.agent_requests import RequestId, answer, open_requests, step_list
from api.routes.dependencies import (
    SLOT,
    CurrentDatabase,
    CurrentNotifier,
    CurrentSettings,
    JobId,
    ReadSession,
)
from db.api_keys import KeyScope
from db.engine import Database
from warpsmith.errors import InvalidInput

router = page_router()
Refused = dict[str, tuple[str, str]]
"""By question, an answer that was refused and why."""


@router.get("/jobs/{job_id}/agents", dependencies=[*allow(KeyScope.READ), *allow(KeyScope.AGENTS), SLOT])
def agents(request: Request, job_id: JobId, session: ReadSession) -> Response:
    """All steps of a job, and what waits for an answer."""
    return _shown(request, session, job_id, {})


@router.post("/jobs/{job_id}/agents/{request_id}", dependencies=allow(KeyScope.AGENTS))
async def reply(
    request: Request,
    job_id: JobId,
    request_id: RequestId,
    settings: CurrentSettings,
    database: CurrentDatabase,
    notifier: CurrentNotifier,
) -> Response:
    """Answer a question; a refused answer comes back with the reason beside it."""
    fields = await read_form(request, MAX_BODY_BYTES)
    text = fields.get("answer", "")
    by = fields.get("by", "")[:120] or "a person on the page"
    try:
        _object(text)
        await run_in_threadpool(answer, request_id, text, by, settings, database, notifier)
    except InvalidInput as exc:
        refused = {request_id: (text, exc.message)}
        return await run_in_threadpool(_again, request, database, job_id, refused)
    return RedirectResponse(f"/jobs/{job_id}/agents", 303)


def _object(text: str) -> None:
    try:
        found = json.loads(text)
    except ValueError as exc:
        raise InvalidInput("answer", f"it is no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise InvalidInput("answer", "it is no JSON object: write {...}")


def _again(request: Request, database: Database, job_id: str, refused: Refused) -> Response:
    with database.read() as session:
        return _shown(request, session, job_id, refused, 422)


def _shown(
    request: Request, session: Session, job_id: str, refused: Refused, status_code: int = 200
) -> Response:
    return page(
        request,
        "agents.html.jinja",
        **heading(session, job_id),
        steps=step_list(session, job_id).items,
        requests=open_requests(session, job_id),
        refused=refused,
        status_code=status_code,
    )
