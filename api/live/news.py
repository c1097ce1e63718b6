"""Long polls: replies that wait until there is news."""

import time

from starlette.concurrency import run_in_threadpool

from api.live.broadcaster import Broadcaster
from api.live.shared_polls import Poll
from db.engine import Database
from db.tables import DEFAULT_TENANT
from db.views import result_views
from db.views.job_status import job_status
from warpsmith.http_models import EventPage

LONGEST_WAIT_S = 60.0
"""Limit on the wait of a request: proxies end what is silent for longer."""


async def changed_status(
    broadcaster: Broadcaster, database: Database, job_id: str, found: Poll, known: str | None, wait_s: float
) -> Poll:
    """The status of a job that has not ended, when it is another than the client's; or after the wait.

    Args:
        found: the present status.
        known: `If-None-Match` of the client; None: the present status.
    """
    if known is not None and not found.is_known(known):
        return found
    broadcaster.require_room()
    with broadcaster.subscribe(database.tenant or DEFAULT_TENANT, job_id) as subscription:
        subscription.knows(job_id, found.etag)
        until_s = time.monotonic() + wait_s
        while not broadcaster.closed and (left_s := until_s - time.monotonic()) > 0:
            _, statuses = await subscription.news(left_s)
            if statuses:
                return statuses[-1]
    return found


async def event_page(
    broadcaster: Broadcaster, database: Database, job_id: str, after: int, limit: int, wait_s: float
) -> EventPage:
    """Events of a job, when there are some, or it has ended; or after the wait.

    Raises:
        NotFound: the tenant has no such job.
    """
    page, ended = await run_in_threadpool(_page, database, job_id, after, limit)
    if page.items or ended or wait_s <= 0:
        return page
    until_s = time.monotonic() + wait_s
    broadcaster.require_room()
    with broadcaster.subscribe(database.tenant or DEFAULT_TENANT, job_id) as subscription:
        await subscription.joined()
        while True:
            page, ended = await run_in_threadpool(_page, database, job_id, after, limit)
            left_s = until_s - time.monotonic()
            if page.items or ended or broadcaster.closed or left_s <= 0:
                return page
            await subscription.news(left_s)


def _page(database: Database, job_id: str, after: int, limit: int) -> tuple[EventPage, bool]:
    with database.read() as session:
        page = result_views.event_page(session, job_id, after, limit)
        return page, job_status(session, job_id).state.is_terminal
