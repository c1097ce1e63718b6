"""Server-sent events: what happens to jobs, told as it happens."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool

from api.live.broadcaster import LIMIT, Broadcaster, Subscription
from api.live.shared_polls import Poll, Polls
from api.requests.auth import CurrentCaller, allow
from api.requests.problems import responses
from api.routes.dependencies import CurrentBroadcaster, CurrentDatabase, CurrentPolls, JobId
from db.api_keys import KeyScope
from db.engine import Database
from db.event_cursor import Cursor
from db.repositories.events import EventRepository
from db.views.live_view import Happened, happened
from warpsmith.domain.state import JobState

router = APIRouter(prefix="/v1", tags=["jobs"])

HEARTBEAT_S = 15.0
"""Longest silence, after which a comment shows that the connection is alive."""
LIFETIME_S = 300.0
"""Age at which a stream ends, so that its client comes again with its key, which may be revoked."""
RETRY_MS = 1000
"""After how long a client should come again when its connection is lost."""

log = logging.getLogger(__name__)

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=r"^[0-9]{1,18}$",
        description="Id of the last event that arrived; the stream goes on behind it.",
    ),
]
After = Annotated[
    int | None,
    Query(ge=0, le=2**31 - 1, description="The same for the first connection; `Last-Event-ID` goes before."),
]
_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Number of an event; a `status` has none of its own."},
        "event": {"type": "string", "description": "`status`, or the event's kind."},
        "retry": {"type": "integer", "minimum": 0, "description": "When to come again, ms."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"itemSchema": _EVENT}}, "description": "Events."},
    204: {"description": "The job has ended, and all of its events have arrived."},
}


@router.get(
    "/jobs/{job_id}/stream",
    response_class=StreamingResponse,
    dependencies=allow(KeyScope.READ),
    responses=responses(404, 422) | _STREAM,
)
async def job_stream(
    job_id: JobId,
    caller: CurrentCaller,
    database: CurrentDatabase,
    polls: CurrentPolls,
    broadcaster: CurrentBroadcaster,
    last: LastEventId = None,
    after: After = None,
) -> Response:
    """What happens to a job, as server-sent events; it ends with the job.

    An event named `status` holds the job's status as `GET /v1/jobs/{id}` has it: one comes first, then one
    whenever it changes, the last one before the event of the job's end. The others are those of
    `GET /v1/jobs/{id}/events`, from the first one on, with their ids; none is missed or told twice by who
    comes again with `Last-Event-ID`, to this process or another.
    """
    broadcaster.require_room()
    status = await polls.status(database, job_id)
    known = _known(last, after)
    since = await run_in_threadpool(_place, database, known)
    if known is not None and status.retry_after_s is None:
        left = await run_in_threadpool(_behind, database, since, job_id)
        if not left:
            return Response(status_code=204)
    subscribed = broadcaster.subscribe(caller.tenant, job_id)
    return _answer(_Stream(broadcaster, subscribed, database, polls, since, job_id, status))


@router.get(
    "/stream",
    response_class=StreamingResponse,
    dependencies=allow(KeyScope.READ),
    responses=responses(422) | _STREAM,
)
async def stream(
    caller: CurrentCaller,
    database: CurrentDatabase,
    polls: CurrentPolls,
    broadcaster: CurrentBroadcaster,
    last: LastEventId = None,
    after: After = None,
) -> Response:
    """What happens to all jobs of your tenant, from now on or from `Last-Event-ID` on, as server-sent events.

    Events named `status` hold the status of a job that changed; the others are those of the jobs' events.
    """
    broadcaster.require_room()
    known = _known(last, after)
    since = await run_in_threadpool(_end if known is None else _place, database, known)
    return _answer(_Stream(broadcaster, broadcaster.subscribe(caller.tenant), database, polls, since))


class _Stream:
    """Stream of one client: events from before it came, then new ones as they are published."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        subscribed: AbstractContextManager[Subscription],
        database: Database,
        polls: Polls,
        since: Cursor,
        job_id: str | None = None,
        status: Poll | None = None,
    ) -> None:
        self._live = broadcaster
        self._subscribed = subscribed
        self._database = database
        self._polls = polls
        self._since = since
        self._job_id = job_id
        self._status = status

    async def frames(self) -> AsyncIterator[bytes]:
        """Its bytes; it ends early if the database is away, and its client comes again."""
        try:
            async for frame in self._frames():
                yield frame
        except (DBAPIError, PoolTimeout) as exc:
            log.error("the database is away: %s", exc)

    async def _frames(self) -> AsyncIterator[bytes]:
        until_s = time.monotonic() + LIFETIME_S
        with self._subscribed as subscription:
            yield f"retry: {RETRY_MS}\n\n".encode()
            if self._status is not None and self._job_id is not None:
                subscription.knows(self._job_id, self._status.etag)
                yield _status_frame(self._status)
            await subscription.joined()
            ended = False
            while found := await run_in_threadpool(_behind, self._database, self._since, self._job_id):
                ended = ended or self._ends(found)
                # The broadcaster may have begun behind them, and then tells nothing of these jobs.
                statuses = [] if self._job_id is not None else await self._statuses(found)
                yield b"".join(map(_status_frame, statuses)) + self._event_frames(found)
            while not (ended or self._live.closed or subscription.overrun or time.monotonic() > until_s):
                events, statuses = await subscription.news(HEARTBEAT_S)
                fresh = [e for e in events if e.at > self._since]
                if self._ends(fresh):
                    ended = True
                    statuses = [await self._polls.status(self._database, str(self._job_id))]
                yield b"".join(map(_status_frame, statuses)) + self._event_frames(fresh) or b":\n\n"

    async def _statuses(self, found: list[Happened]) -> list[Poll]:
        jobs = dict.fromkeys(e.event.job for e in found)
        return list(await asyncio.gather(*(self._polls.status(self._database, job) for job in jobs)))

    def _event_frames(self, found: list[Happened]) -> bytes:
        if found:
            self._since = found[-1].at
        return b"".join(_event_frame(e) for e in found)

    def _ends(self, found: Iterable[Happened]) -> bool:
        """True if one of these is the last event of the only job."""
        return self._job_id is not None and any(
            e.event.kind == "state" and JobState(str(e.event.data["state"])).is_terminal for e in found
        )


def _answer(stream: _Stream) -> Response:
    return StreamingResponse(
        stream.frames(),
        media_type="text/event-stream",
        # A proxy that gathers the reply would hold events back.
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _event_frame(found: Happened) -> bytes:
    event = found.event
    return f"id: {event.id}\nevent: {event.kind}\ndata: {event.model_dump_json()}\n\n".encode()


def _status_frame(poll: Poll) -> bytes:
    return b"event: status\ndata: " + poll.body + b"\n\n"


def _known(last: str | None, after: int | None) -> int | None:
    return after if last is None else int(last)


def _place(database: Database, known: int | None) -> Cursor:
    if known is None:
        return Cursor()
    with database.read() as session:
        return EventRepository(session).cursor(known)


def _end(database: Database, _known: int | None) -> Cursor:
    with database.read() as session:
        return EventRepository(session).end()


def _behind(database: Database, since: Cursor, job_id: str | None) -> list[Happened]:
    with database.read() as session:
        return happened(session, since, LIMIT, jobs=None if job_id is None else [job_id])
