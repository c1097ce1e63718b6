"""Publishes what happens to jobs to all waiting clients, by one look into the database a second."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool

from api.live.shared_polls import MOST, Poll, poll_of
from api.requests.problems import QueueFull
from db.engine import Database
from db.event_cursor import START, Cursor
from db.repositories.events import EventRepository
from db.views.job_status import Watched, watched_statuses
from db.views.live_view import Happened, happened, running_jobs

TICK_S = 1.0
"""Seconds between two looks into the database."""
LOCAL_TICK_S = 0.2
"""Seconds between two looks into a database that is a file of this machine."""
LIMIT = 1000
"""Limit on the events of one look, and on those that wait for a slow client."""

MOST_SUBSCRIPTIONS = 600
"""Limit on the subscriptions at a time, below that on the connections of a process."""
AGAIN_S = 5.0
"""Seconds after which one who was refused may try again."""

log = logging.getLogger(__name__)


class Subscription:
    """Events and statuses for one waiting client, of a job or of a tenant. Lives in the event loop.

    Args:
        job_id: None: all jobs of the tenant.
    """

    def __init__(self, tenant: str, job_id: str | None) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.overrun = False
        """True if its client takes events too slowly; it should be told to come again."""
        self._events: deque[Happened] = deque()
        self._statuses: dict[str, Poll] = {}
        self._known: dict[str, str] = {}
        self._ready = asyncio.Event()
        self._joined = asyncio.Event()

    async def joined(self) -> None:
        """Wait until all that happens from now on will be told: a look that knew of it has ended.

        One that was under way when it came may pass over events of its job.
        """
        await self._joined.wait()

    def join(self) -> None:
        """Note that a look has ended that knew of this subscription."""
        self._joined.set()

    def knows(self, job_id: str, etag: str) -> None:
        """Note that the client has this status already."""
        self._known[job_id] = etag

    async def news(self, timeout_s: float) -> tuple[list[Happened], list[Poll]]:
        """New events in order, and statuses that changed; nothing after `timeout_s` or at the end."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return [], []
        self._ready.clear()
        events, statuses = list(self._events), list(self._statuses.values())
        self._events.clear()
        self._statuses.clear()
        return events, statuses

    def wants(self, tenant: str, job_id: str) -> bool:
        """True if it waits for this job."""
        return self.job_id == job_id if self.job_id is not None else self.tenant == tenant

    def publish(self, event: Happened) -> None:
        """Queue an event for the client; a client with too many of them is marked as `overrun`."""
        self.overrun = self.overrun or len(self._events) >= LIMIT
        if not self.overrun:
            self._events.append(event)
        self._ready.set()

    def publish_status(self, job_id: str, poll: Poll) -> None:
        """Queue a status, unless the client has it; a later one replaces it."""
        if self._known.get(job_id) != poll.etag:
            self._known[job_id] = poll.etag
            self._statuses[job_id] = poll
            self._ready.set()

    def end(self) -> None:
        """End the waiting of its client."""
        self._joined.set()
        self._ready.set()


@dataclass
class _Look:
    """Events and statuses that one look into the database has found."""

    events: list[Happened] = field(default_factory=list)
    polls: dict[str, tuple[str, Poll]] = field(default_factory=dict)
    """By job: its tenant, empty if only subscriptions by name want it; and its status."""


class Broadcaster:
    """Publishes events and statuses to subscriptions. One per process; costs nothing without a subscription.

    Subscriptions to jobs by name cost one statement a look, and another when there are new events. Those to
    a tenant's jobs cost three.
    """

    def __init__(self, database: Database, tick_s: float = TICK_S) -> None:
        self._database = database
        self._tick_s = tick_s
        self._subscriptions: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._cursor: Cursor | None = None
        self._counts: dict[str, int] = {}
        self.closed = False

    def require_room(self) -> None:
        """Check that one more may wait.

        Raises:
            QueueFull: too many wait already.
        """
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            raise QueueFull("too many wait for news of jobs here; ask without waiting", AGAIN_S)

    @contextmanager
    def subscribe(self, tenant: str, job_id: str | None = None) -> Iterator[Subscription]:
        """Context with a subscription. The caller has made sure that it may see the job."""
        subscription = Subscription(tenant, job_id)
        self._subscriptions.add(subscription)
        if self.closed:
            subscription.end()
        elif self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all waiting, for good."""
        self.closed = True
        for subscription in self._subscriptions:
            subscription.end()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._subscriptions:
                began_s = time.monotonic()
                await self._tick()
                await asyncio.sleep(max(0.0, self._tick_s - (time.monotonic() - began_s)))
        finally:
            self._task = None
            self._cursor = None
            self._counts.clear()

    async def _tick(self) -> None:
        subscriptions = set(self._subscriptions)
        named = {s.job_id for s in subscriptions if s.job_id is not None}
        tenants = {s.tenant for s in subscriptions if s.job_id is None}
        try:
            found = await run_in_threadpool(self._look, named, tenants)
        except (DBAPIError, PoolTimeout) as exc:
            log.warning("those who watch jobs hear nothing: %s", exc)
            return
        for subscription in subscriptions & self._subscriptions:
            subscription.join()
            for event in found.events:
                if subscription.wants(event.tenant, event.event.job):
                    subscription.publish(event)
            for job_id, (tenant, poll) in found.polls.items():
                if subscription.wants(tenant, job_id):
                    subscription.publish_status(job_id, poll)

    def _look(self, named: set[str], tenants: set[str]) -> _Look:
        if self._cursor is None:
            self._cursor = self._start()
        statuses: dict[str, Watched] = {}
        jobs = sorted(named)
        for at in range(0, len(jobs), MOST):
            statuses |= watched_statuses(self._database, jobs[at : at + MOST])
        found = _Look(polls={job_id: ("", poll_of(seen.status)) for job_id, seen in statuses.items()})
        counts = {job_id: seen.events for job_id, seen in statuses.items()}
        if tenants or counts != self._counts:
            found.events = self._events(None if tenants else named)
            # A full look leaves events for the next one.
            self._counts = counts if len(found.events) < LIMIT else {}
        if tenants:
            found.polls |= self._of_tenants(tenants, found.events)
        return found

    def _start(self) -> Cursor:
        if self._database.is_server:
            with self._database.write() as session:
                EventRepository(session).put_restored_first()
        with self._database.read() as session:
            return EventRepository(session).end()

    def _events(self, jobs: set[str] | None) -> list[Happened]:
        with self._database.read() as session:
            found = happened(session, self._cursor or START, LIMIT, jobs=jobs)
        if found:
            self._cursor = found[-1].at
        return found

    def _of_tenants(self, tenants: set[str], events: list[Happened]) -> dict[str, tuple[str, Poll]]:
        """Statuses of the jobs of tenants that run, or to which something has happened."""
        owners = {e.event.job: e.tenant for e in events if e.tenant in tenants}
        polls: dict[str, tuple[str, Poll]] = {}
        for tenant in tenants:
            with self._database.of(tenant).read() as session:
                ids = {*running_jobs(session, [tenant]), *(j for j, t in owners.items() if t == tenant)}
            seen = watched_statuses(self._database.of(tenant), sorted(ids)) if ids else {}
            polls |= {job_id: (tenant, poll_of(w.status)) for job_id, w in seen.items()}
        return polls
