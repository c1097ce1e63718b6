"""Errors as RFC 9457 problem details; the only place that maps errors to status codes."""

import logging
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from api.requests.query_names import described
from db.engine import Database
from db.repositories.jobs import KeyReused
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput, NotFound, Unavailable
from warpsmith.http_models import FieldProblem, Problem
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob
from warpsmith.job_files.validation_errors import field_problems
from warpsmith.system.storage_errors import cause_of

MEDIA_TYPE = "application/problem+json"

AWAY_S = 5.0

log = logging.getLogger(__name__)


class Conflict(Exception):
    """The present state does not allow the request; the message says when it will."""


class TooLarge(HTTPException):
    """The body exceeds the limit. FastAPI turns any other error of reading a body into a bare 400."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, detail)


class TooSlow(HTTPException):
    """The body did not arrive in time."""

    def __init__(self) -> None:
        super().__init__(408, "the body did not arrive in time")


class Forbidden(Exception):
    """The caller's key lacks the right; the message names it."""


class TooMany(Exception):
    """The caller has used up its limit; the message names it."""

    def __init__(self, detail: str, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class QueueFull(TooMany):
    """The service accepts no more jobs from anybody for now."""


def problem(
    status: int,
    title: str,
    detail: str = "",
    errors: tuple[FieldProblem, ...] = (),
    *,
    retry_after_s: float = AWAY_S,
) -> Response:
    """A problem as a response.

    Args:
        retry_after_s: seconds for `Retry-After`, with 429 and 503.
    """
    body = Problem(title=title, status=status, detail=detail, errors=errors)
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body.model_dump_json(), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI) -> None:
    """Register a handler for every kind of error."""
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(KeyReused, _key_reused)
    app.add_exception_handler(InvalidInput, _invalid)
    app.add_exception_handler(NotFound, _not_found)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(TooLarge, _too_large)
    app.add_exception_handler(TooSlow, _too_slow)
    app.add_exception_handler(Forbidden, _forbidden)
    app.add_exception_handler(TooMany, _too_many)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(DBAPIError, _database_away)
    app.add_exception_handler(PoolTimeout, _database_away)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented errors of a route."""
    words = {
        400: "Not a request",
        401: "No valid API key",
        403: "The key lacks the scope",
        404: "No such thing",
        409: "Not in this state",
        413: "Body too large",
        415: "Not JSON",
        422: "Bad field",
        429: "The key has reached a limit",
        503: "The database is unavailable, or the queue is full",
    }
    return {
        s: {"model": Problem, "description": words.get(s, "Error"), "content": {MEDIA_TYPE: {}}}
        for s in statuses
    }


def _bad_request(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    found = list(exc.errors())
    if not _is_json(request) and any(tuple(e["loc"]) == ("body",) for e in found):
        return problem(
            415, "Not JSON", "send JSON with Content-Type: application/json; `warpsmith submit` takes YAML"
        )
    for error in found:
        if error["type"] == "json_invalid":
            error["msg"] = f"JSON decode error at character {error['loc'][-1]}: {error['ctx']['error']}"
            error["loc"] = ()
        error["loc"] = tuple(p for p in error["loc"] if p != "body")
    errors = tuple(FieldProblem(field=f, message=m) for f, m in field_problems(found, Job, exc.body))
    return problem(422, "The request is not valid", errors=errors)


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _invalid(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, InvalidInput)
    found = exc.findings if isinstance(exc, InvalidJob) else (Finding(exc.field, exc.message),)
    return problem(422, "The request is not valid", errors=told(found))


def told(found: Iterable[Finding]) -> tuple[FieldProblem, ...]:
    """Findings as they are sent; their lines are those of sources, since a job has none of its own."""
    return tuple(FieldProblem.model_validate(replace(f, line=f.inner_line).as_json()) for f in found)


def _key_reused(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, InvalidInput)
    return problem(422, "Idempotency-Key reused", exc.message)


def _not_found(_: Request, exc: Exception) -> Response:
    return problem(404, "Not found", str(exc))


def _conflict(_: Request, exc: Exception) -> Response:
    return problem(409, "Not in this state", str(exc))


def _too_large(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, TooLarge)
    return problem(413, "Body too large", exc.detail)


def _too_slow(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, TooSlow)
    return problem(408, "Too slow", exc.detail)


def _unavailable(_: Request, exc: Exception) -> Response:
    return problem(503, "Unavailable", str(exc))


def _forbidden(_: Request, exc: Exception) -> Response:
    return problem(403, "Not with this key", str(exc))


def _too_many(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, TooMany)
    status, title = (503, "Queue full") if isinstance(exc, QueueFull) else (429, "Too many")
    return problem(status, title, str(exc), retry_after_s=exc.retry_after_s)


def _database_away(request: Request, exc: Exception) -> Response:
    return database_away(exc, request.app.state.database)


def database_away(exc: Exception, database: Database) -> Response:
    """The response while the database is unavailable; a server's own words are for its operator."""
    log.error("the database is away: %s", exc)
    words = f"{cause_of(exc)}: {database.path}" if database.path else "the database does not answer"
    return problem(503, "Unavailable", f"{words}; nothing was stored, try again")


def _http(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    response = problem(exc.status_code, str(exc.detail))
    for name, value in (exc.headers or {}).items():
        response.headers[name] = value
    if exc.status_code == 405:
        response.headers["Allow"] = ", ".join(sorted(m.upper() for m in described(request)))
    return response


def _unexpected(_: Request, exc: Exception) -> Response:
    log.exception("unexpected error", exc_info=exc)
    return problem(500, "Internal error", "this is our fault; it was logged")
