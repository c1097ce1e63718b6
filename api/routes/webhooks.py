"""Routes of webhooks: addresses to which a tenant's events are sent."""

import threading
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Body, Path, Response

from api.requests.auth import CurrentCaller, allow
from api.requests.posted import Posted
from api.requests.problems import Conflict, TooMany, responses
from api.routes.dependencies import CurrentDatabase, CurrentNotifier, CurrentSettings, ReadSession
from db.api_keys import KeyScope
from db.engine import Database
from db.message_names import DELIVER, WEBHOOK_QUEUE
from db.queue.broker import relay
from db.repositories.jobs import JobRepository
from db.repositories.notifications.webhooks import WebhookRepository
from db.repositories.outbox import OutboxRepository
from db.tables import WebhookRow
from warpsmith.errors import InvalidInput, NotFound
from warpsmith.http_models import NO_NUL
from warpsmith.system.addresses import Allowed
from warpsmith.webhooks.models import NewWebhook, WebhookCreated, WebhookList, WebhookView
from warpsmith.webhooks.sending import WebhookSender

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
making = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
"""The route that waits for no slot, since it may take seconds to look up a host, without a connection."""

MOST = 20
"""Limit on the webhooks of a tenant."""
LOOK_UP_S = 3.0
"""Limit on the time to resolve the host of a new webhook."""
LOOK_UPS = 4
"""Limit on hosts that are resolved at a time, so that slow names hold up no other request."""
_looking_up = threading.BoundedSemaphore(LOOK_UPS)

WebhookId = Annotated[str, Path(max_length=64, pattern=NO_NUL, description="Id of a webhook.")]


@router.post(
    "", status_code=201, dependencies=allow(KeyScope.SUBMIT), responses=responses(400, 409, 413, 415, 422)
)
def create_webhook(
    posted: Annotated[Posted[NewWebhook], Body()],
    caller: CurrentCaller,
    settings: CurrentSettings,
    database: CurrentDatabase,
    response: Response,
) -> WebhookCreated:
    """Have the events of your jobs, or of one job, sent to an address from now on.

    The answer alone holds the secret that signs them.
    """
    wanted = posted.read()
    _check_room(database, wanted)
    _check_url(wanted.url, settings.webhook_private)
    with database.write() as session:
        if WebhookRepository(session).count() >= MOST:
            raise _too_many()
        row = WebhookRepository(session).create(wanted, caller.tenant)
    response.headers["Location"] = f"/v1/webhooks/{row.id}"
    return WebhookCreated(**dict(_view(row)), secret=row.secret)


@router.get("", dependencies=allow(KeyScope.READ), responses=responses(422))
def list_webhooks(session: ReadSession) -> WebhookList:
    """The webhooks of your tenant, oldest first, without their secrets."""
    return WebhookList(items=tuple(_view(row) for row in WebhookRepository(session).all()))


@router.get("/{webhook_id}", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def webhook(webhook_id: WebhookId, session: ReadSession) -> WebhookView:
    """A webhook, and how its last attempt went."""
    return _view(WebhookRepository(session).get(webhook_id))


@router.delete(
    "/{webhook_id}", status_code=204, dependencies=allow(KeyScope.SUBMIT), responses=responses(404, 422)
)
def delete_webhook(webhook_id: WebhookId, database: CurrentDatabase) -> None:
    """Delete a webhook. An attempt that is under way is the last."""
    with database.write() as session:
        WebhookRepository(session).delete(webhook_id)


@router.post("/{webhook_id}/enable", dependencies=allow(KeyScope.SUBMIT), responses=responses(404, 422))
def enable_webhook(webhook_id: WebhookId, database: CurrentDatabase) -> WebhookView:
    """Resume a webhook that was disabled or waits after a failure: with the event that it did not take."""
    with database.write() as session:
        return _view(WebhookRepository(session).enable(webhook_id))


@router.post(
    "/{webhook_id}/ping", status_code=202, dependencies=allow(KeyScope.SUBMIT), responses=responses(404, 422)
)
def ping_webhook(webhook_id: WebhookId, database: CurrentDatabase, notifier: CurrentNotifier) -> WebhookView:
    """Have a message of the kind `ping` sent now, also to a disabled webhook.

    Once `pinging` is false, `last_status` and `last_error` say how it went.
    """
    with database.write() as session:
        view = _view(WebhookRepository(session).ping(webhook_id))
        OutboxRepository(session).add(DELIVER, WEBHOOK_QUEUE, webhook_id)
    relay(database, notifier)
    return view


def _check_room(database: Database, wanted: NewWebhook) -> None:
    with database.read() as session:
        if WebhookRepository(session).count() >= MOST:
            raise _too_many()
        if wanted.job is None:
            return
        try:
            state = JobRepository(session).get(wanted.job).state
        except NotFound as exc:
            raise InvalidInput("job", str(exc)) from exc
        if state.is_terminal:
            raise Conflict(f"job {wanted.job} has ended: nothing more happens to it")


def _check_url(url: str, private: str) -> None:
    if not _looking_up.acquire(blocking=False):
        raise TooMany("too many hosts of webhooks are being looked up", 1.0)
    try:
        WebhookSender(_allowed(private)).check(url, LOOK_UP_S)
    finally:
        _looking_up.release()


@lru_cache(maxsize=8)
def _allowed(private: str) -> Allowed:
    return Allowed.of(private)


def _too_many() -> Conflict:
    return Conflict(f"there are {MOST} webhooks already; delete one")


def _view(row: WebhookRow) -> WebhookView:
    return WebhookView(
        id=row.id,
        url=row.url,
        kinds=row.kinds,
        job=row.job_id,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        disabled_reason=row.disabled_reason,
        pinging=row.ping,
        failures=row.failures,
        next_attempt_at=row.next_attempt_at,
        last_attempt_at=row.last_attempt_at,
        last_status=row.last_status,
        last_error=row.last_error,
    )
