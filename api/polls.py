"""Polls that arrive while the database answers others share the next statement."""

import asyncio
from collections import defaultdict

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool

from db.engine import Database
from db.status import poll_statuses
from warpsmith.errors import NotFound

MOST = 200
"""Jobs in a statement."""

_Waiting = dict[str, list["asyncio.Future[bytes]"]]


class Polls:
    """One statement at a time for each tenant, for every job that was asked for meanwhile.

    Nothing is kept: what a poll gets was read after it arrived.
    """

    def __init__(self) -> None:
        self._waiting: dict[str | None, _Waiting] = {}
        self._serving: dict[str | None, asyncio.Task[None]] = {}

    async def status(self, database: Database, job_id: str) -> bytes:
        """Where a job stands, as JSON.

        Raises:
            NotFound: that tenant has no such job.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
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


async def _answer(database: Database, waiting: _Waiting) -> None:
    try:
        found = await run_in_threadpool(_read, database, list(waiting))
    except Exception as exc:  # noqa: BLE001  every client gets it, whatever it is
        if len(waiting) > 1 and not isinstance(exc, DBAPIError | PoolTimeout):
            # What is wrong with one job is not to fall on the others.
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


def _open(answers: list["asyncio.Future[bytes]"]) -> list["asyncio.Future[bytes]"]:
    """Those whose client is still there."""
    return [answer for answer in answers if not answer.done()]


def _read(database: Database, job_ids: list[str]) -> dict[str, bytes]:
    statuses = poll_statuses(database, job_ids)
    return {job: status.model_dump_json().encode() for job, status in statuses.items()}
