"""The broadcaster, where what it does takes turns with what happens."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest

import api.live.broadcaster
from api.live.broadcaster import Broadcaster
from db.engine import Database
from db.event_cursor import Cursor
from db.repositories.events import EventRepository
from db.repositories.jobs import JobRepository
from db.views.live_view import happened
from testbed.api_service import Service
from testbed.deadlines import HANGS_S
from warpsmith.testing.jobs import scale_job


class SlowBroadcaster(Broadcaster):
    """Its second look stands before it reads events, until it may go on."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, tick_s=0.05)
        self.standing, self.go = threading.Event(), threading.Event()
        self.reads = 0

    def _events(self, jobs: set[str] | None) -> Any:
        self.reads += 1
        if self.reads == 2:
            self.standing.set()
            assert self.go.wait(HANGS_S)
        return super()._events(jobs)


def note(database: Database, job_id: str, kind: str) -> None:
    with database.write() as session:
        EventRepository(session).add(job_id, kind, {})


def test_who_comes_during_a_look_misses_nothing(database: Database) -> None:
    with database.write() as session:
        known, new = (JobRepository(session).create(scale_job())[0].id for _ in range(2))

    async def listen(broadcaster: Broadcaster) -> list[str]:
        with broadcaster.subscribe("default", new) as subscription:
            await subscription.joined()
            with database.read() as session:
                found = happened(session, Cursor(), 100, jobs=[new])
            for wait_s in (HANGS_S, 0.2):
                found += [e for e in (await subscription.news(wait_s))[0] if e.at > found[-1].at]
            return [e.event.kind for e in found]

    async def run() -> list[str]:
        broadcaster = SlowBroadcaster(database)
        with broadcaster.subscribe("default", known) as first:
            await first.joined()
            note(database, known, "begin")
            assert await asyncio.to_thread(broadcaster.standing.wait, HANGS_S)
            listening = asyncio.create_task(listen(broadcaster))
            await asyncio.sleep(0.3)
            note(database, new, "meanwhile")
            note(database, known, "behind it")
            broadcaster.go.set()
            return await listening

    assert asyncio.run(run()) == ["state", "meanwhile"]


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/jobs/{}/stream", "/v1/jobs/{}?wait=5"])
def test_one_too_many_is_told_when_to_come_again(
    embedded: Service, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with embedded.database.write() as session:
        job_id = JobRepository(session).create(scale_job())[0].id
    monkeypatch.setattr(api.live.broadcaster, "MOST_SUBSCRIPTIONS", 0)
    refused: httpx2.Response = embedded.http.get(path.format(job_id))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
