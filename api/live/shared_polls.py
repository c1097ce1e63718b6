"""Batches concurrent polls: those that arrive during a database statement share the next one."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool

from db.engine import Database
from db.views.job_status import poll_statuses
from warpsmith.domain.state import JobState
from warpsmith.errors import NotFound
from warpsmith.http_models import JobStatus

MOST = 200
"""Limit on the jobs of one statement."""

RETRY_AFTER_S = {JobState.QUEUED: 2}
"""Seconds after which to ask again, by state; for a running job: `WORKING_RETRY_AFTER_S`."""
WORKING_RETRY_AFTER_S = 1


@dataclass(frozen=True)
class Poll:
    """The status of a job, ready to be sent."""

    body: bytes
    """The status as JSON."""
    etag: str
    """Weak ETag: unchanged as long as only the time left differs."""
    retry_after_s: int | None
    """Seconds after which to ask again; None if the job has ended and will not change."""

    def headers(self) -> dict[str, str]:
        """The HTTP headers of the response."""
        found = {"ETag": self.etag, "Cache-Control": "no-cache"}
        return found if self.retry_after_s is None else found | {"Retry-After": str(self.retry_after_s)}

    def is_known(self, if_none_match: str | None) -> bool:
        """True if the client already has this status, by its `If-None-Match`."""
        named = [tag.strip() for tag in (if_none_match or "").split(",")]
        return "*" in named or self.etag in named or self.etag.removeprefix("W/") in named


def poll_of(status: JobStatus) -> Poll:
    """A status as a response."""
    content = status.model_dump_json(exclude={"seconds_left"}).encode()
    etag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'
    again = RETRY_AFTER_S.get(status.state, WORKING_RETRY_AFTER_S)
    return Poll(status.model_dump_json().encode(), etag, None if status.state.is_terminal else again)


_Waiting = dict[str, list["asyncio.Future[Poll]"]]


class Polls:
    """Runs one statement at a time per tenant, for all jobs requested meanwhile.

    Nothing is cached: the data of a poll were read after it arrived.
    """

    def __init__(self) -> None:
        self._waiting: dict[str | None, _Waiting] = {}
        self._serving: dict[str | None, asyncio.Task[None]] = {}

    async def status(self, database: Database, job_id: str) -> Poll:
        """Status of a job.

        Raises:
            NotFound: the tenant has no such job.
        """
        answer: asyncio.Future[Poll] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(database.tenant, defaultdict(list))
        waiting[job_id].append(answer)
        if database.tenant not in self._serving:
            self._serving[database.tenant] = asyncio.create_task(self._serve(database))
        return await answer

    async def _serve(self, database: Database) -> None:
        tenant = database.tenant
        try:
            while waiting := self._waiting.pop(tenant, None):
                jobs = list(waiting)
                for at in range(0, len(jobs), MOST):
                    await _answer(database, {job: waiting[job] for job in jobs[at : at + MOST]})
        finally:
            del self._serving[tenant]


Found = TypeVar("Found")


class Shared(Generic[Found]):
    """Looks something up once for all who ask while it is being looked up, one after the other."""

    def __init__(self) -> None:
        self._running: asyncio.Future[Found] | None = None

    async def get(self, look: Callable[[], Found]) -> Found:
        """The result of `look`, run in a thread for all who ask meanwhile; raises its errors."""
        if self._running is None:
            self._running = asyncio.ensure_future(run_in_threadpool(look))
            self._running.add_done_callback(self._forget)
        # Whoever goes away must not take the answer from the others.
        return await asyncio.shield(self._running)

    def _forget(self, _done: "asyncio.Future[Found]") -> None:
        self._running = None


async def _answer(database: Database, waiting: _Waiting) -> None:
    try:
        found = await run_in_threadpool(_read, database, list(waiting))
    except Exception as exc:  # noqa: BLE001  every client gets it, whatever it is
        if len(waiting) > 1 and not isinstance(exc, DBAPIError | PoolTimeout):
            # An error of one job must not affect the others.
            for job, answers in waiting.items():
                await _answer(database, {job: answers})
            return
        _fail(waiting, exc)
        return
    for job, answers in waiting.items():
        for answer in _open(answers):
            if job in found:
                answer.set_result(found[job])
            else:
                answer.set_exception(NotFound(f"no job {job}"))


def _fail(waiting: _Waiting, exc: Exception) -> None:
    for answers in waiting.values():
        for answer in _open(answers):
            answer.set_exception(exc)


def _open(answers: list["asyncio.Future[Poll]"]) -> list["asyncio.Future[Poll]"]:
    """Answers whose client is still connected."""
    return [answer for answer in answers if not answer.done()]


def _read(database: Database, job_ids: list[str]) -> dict[str, Poll]:
    return {job: poll_of(status) for job, status in poll_statuses(database, job_ids).items()}
