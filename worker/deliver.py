"""Sends events to a webhook: in order, each until it is taken, for a while before others have their turn."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from db.engine import Database, utc_now
from db.event_cursor import Cursor
from db.identifiers import new_id
from db.repositories.events import EventRepository
from db.repositories.notifications.deliveries import Claim, DeliveryRepository
from db.tables import EventRow
from db.views.job_status import job_status
from warpsmith import __version__
from warpsmith.domain.base import Frozen
from warpsmith.domain.state import JobState
from warpsmith.errors import LeaseLost
from warpsmith.http_models import JobStatus
from warpsmith.system.addresses import Allowed
from warpsmith.webhooks.models import WebhookMessage
from warpsmith.webhooks.sending import DeliveryReply, WebhookSender
from warpsmith.webhooks.signature import signed_headers
from worker.device.process_context import Context

SLICE_S = 10.0
"""Seconds after which no further attempt begins; with the last one, well within the lease."""
PAGE = 50

log = logging.getLogger(__name__)


class Ping(Frozen):
    """Body of a ping."""

    kind: str = "ping"
    at: datetime


@dataclass(frozen=True)
class _OutgoingEvent:
    """An event, and its message if the webhook wants it."""

    place: Cursor
    message_id: str
    body: bytes | None
    ends_job: bool


def answer(context: Context, webhook_id: str) -> bool:
    """Handle the message for a webhook; False if it has nothing to do, or another process has it."""
    return deliver(context.database, _sender(context), webhook_id)


def run_next(context: Context) -> bool:
    """Serve the webhook that has waited longest, without a message; False if none waits."""
    with context.database.read() as session:
        deliveries = DeliveryRepository(session)
        due = deliveries.due(1) if deliveries.any() else []
    return bool(due) and answer(context, due[0][0])


def deliver(database: Database, sender: WebhookSender, webhook_id: str) -> bool:
    """Send what waits for a webhook; False if it has nothing to do, or another process has it.

    A crash between a reply and the commit sends the event again.
    """
    with database.write() as session:
        claim = DeliveryRepository(session).claim(webhook_id)
    if claim is None:
        return False
    try:
        _Delivery(database, sender, claim).run()
    except LeaseLost:
        log.info("webhook %s was deleted, or another process has it", webhook_id)
    return True


class _Delivery:
    """The turn of one webhook."""

    def __init__(self, database: Database, sender: WebhookSender, claim: Claim) -> None:
        self._database = database
        self._sender = sender
        self._claim = claim
        self._until_s = time.monotonic() + SLICE_S

    def run(self) -> None:
        """Send the ping, then events until there is none, one fails, or the time is up."""
        if self._claim.ping:
            body = Ping(at=utc_now()).model_dump_json().encode()
            reply = self._post(f"ping_{new_id()}", body)
            with self._database.write() as session:
                DeliveryRepository(session).pinged(self._claim, reply)
        if self._claim.due and not self._send_events():
            return
        with self._database.write() as session:
            DeliveryRepository(session).release(self._claim)

    def _send_events(self) -> bool:
        """False if the lease has ended with a failure, or with the job."""
        place = self._claim.cursor
        while events := self._events(place):
            for event in events:
                if event.body is not None:
                    if time.monotonic() >= self._until_s:
                        self._skip_to(place)
                        return True
                    reply = self._post(event.message_id, event.body)
                    with self._database.write() as session:
                        deliveries = DeliveryRepository(session)
                        if not reply.ok:
                            # What was not wanted before it is not looked at again.
                            deliveries.took(self._claim, place)
                            deliveries.failed(self._claim, reply)
                            return False
                        deliveries.took(self._claim, event.place, reply)
                place = event.place
                if event.ends_job and self._claim.job_id is not None:
                    with self._database.write() as session:
                        DeliveryRepository(session).finish(self._claim)
                    return False
            self._skip_to(place)
            if time.monotonic() >= self._until_s:
                break
        return True

    def _skip_to(self, place: Cursor) -> None:
        with self._database.write() as session:
            DeliveryRepository(session).took(self._claim, place)

    def _events(self, place: Cursor) -> list[_OutgoingEvent]:
        claim = self._claim
        jobs = None if claim.job_id is None else [claim.job_id]
        with self._database.of(claim.tenant).read() as session:
            rows = EventRepository(session).after(place, PAGE, jobs=jobs)
            return [_event(session, row, claim.kinds) for row in rows]

    def _post(self, message_id: str, body: bytes) -> DeliveryReply:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"warpsmith/{__version__}",
            **signed_headers(self._claim.secret, message_id, int(time.time()), body),
        }
        reply = self._sender.post(self._claim.url, headers, body)
        if not reply.ok:
            log.info("webhook %s did not take %s: %s", self._claim.id, message_id, reply.error)
        return reply


def _event(session: Session, row: EventRow, kinds: Sequence[str]) -> _OutgoingEvent:
    ends_job = row.kind == "state" and JobState(str(row.data["state"])).is_terminal
    # The time tells events apart whose ids a restored database gave a second time.
    message_id = f"event_{row.id}_{int(row.at.timestamp() * 1000)}"
    place = Cursor(row.xact, row.id)
    if kinds and row.kind not in kinds:
        return _OutgoingEvent(place, message_id, None, ends_job)
    status: JobStatus | None = job_status(session, row.job_id) if ends_job else None
    left_out = set() if ends_job else {"status"}
    message = WebhookMessage(
        id=row.id, job=row.job_id, at=row.at, kind=row.kind, data=row.data, status=status
    )
    return _OutgoingEvent(place, message_id, message.model_dump_json(exclude=left_out).encode(), ends_job)


def _sender(context: Context) -> WebhookSender:
    return WebhookSender(Allowed.of(context.settings.webhook_private))
