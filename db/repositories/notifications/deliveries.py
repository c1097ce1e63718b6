"""Deliveries of webhooks: which are due, who makes them, and how they ended."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import Session

from db.engine import clock, now
from db.event_cursor import Cursor, final
from db.identifiers import new_id
from db.message_names import DELIVER, WEBHOOK_QUEUE
from db.repositories.events import EventRepository
from db.repositories.outbox import OutboxRepository
from db.tables import EventRow, JobRow, WebhookRow
from warpsmith.errors import LeaseLost
from warpsmith.webhooks.sending import DeliveryReply

LEASE_S = 60.0
"""Seconds after which a delivery counts as lost with its worker."""
QUIET_S = 10.0
"""Seconds after which a message for a due webhook is sent again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 3600.0
"""Pause after the first failure, doubled by each further one, up to the longest; varied by a quarter."""
GIVE_UP_S = 3 * 86400.0
"""Seconds of failures without a success, after which a webhook is disabled."""
AT_ONCE = 3
"""Limit on deliveries of one tenant at a time, so that slow receivers of one hold up nobody else."""


@dataclass(frozen=True)
class Claim:
    """A webhook that this process alone serves for now."""

    id: str
    token: str
    tenant: str
    url: str
    secret: str
    kinds: tuple[str, ...]
    job_id: str | None
    cursor: Cursor
    ping: bool
    due: bool
    """True if events may be sent; False if only the ping may."""


class DeliveryRepository:
    """Queries on the `webhook` table for those who deliver, over all tenants."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def any(self) -> bool:
        """True if there is a webhook."""
        return bool(self._session.scalar(select(exists().where(WebhookRow.id.is_not(None)))))

    def due(self, limit: int = 100) -> Sequence[tuple[str, str]]:
        """Ids and tenants of webhooks that have something to send and that nobody was told of, the longest
        waiting first."""
        before = clock(self._session, -QUIET_S)
        query = (
            select(WebhookRow.id, WebhookRow.tenant)
            .where(self._is_free(), or_(WebhookRow.notified_at.is_(None), WebhookRow.notified_at < before))
            .where(or_(WebhookRow.ping, and_(self._may_send(), self._waiting())))
            .order_by(WebhookRow.next_attempt_at, WebhookRow.id)
            .limit(limit)
        )
        return [(webhook_id, tenant) for webhook_id, tenant in self._session.execute(query)]

    def notify_due(self) -> Sequence[str]:
        """Send a message for each that is due, within the limit of each tenant."""
        at, busy = clock(self._session), Counter[str]()
        held = or_(~self._is_free(), WebhookRow.notified_at >= clock(self._session, -QUIET_S))
        for tenant, count in self._session.execute(
            select(WebhookRow.tenant, func.count()).where(held).group_by(WebhookRow.tenant)
        ):
            busy[tenant] = count
        notified = []
        for webhook_id, tenant in self.due():
            if busy[tenant] < AT_ONCE:
                busy[tenant] += 1
                notified.append(webhook_id)
        for webhook_id in notified:
            OutboxRepository(self._session).add(DELIVER, WEBHOOK_QUEUE, webhook_id)
        self._session.execute(update(WebhookRow).where(WebhookRow.id.in_(notified)).values(notified_at=at))
        return notified

    def claim(self, webhook_id: str) -> Claim | None:
        """Take a webhook; None if it has nothing to do, or another process has it."""
        token = new_id()
        row = self._session.scalars(
            update(WebhookRow)
            .where(WebhookRow.id == webhook_id, self._is_free(), or_(WebhookRow.ping, self._may_send()))
            .values(lease_token=token, leased_until=clock(self._session, LEASE_S))
            .returning(WebhookRow)
            .execution_options(populate_existing=True)
        ).one_or_none()
        if row is None:
            return None
        due = row.disabled_at is None and row.next_attempt_at <= now(self._session)
        at = Cursor(row.cursor_xact, row.cursor_id)
        return Claim(row.id, token, row.tenant, row.url, row.secret, row.kinds, row.job_id, at, row.ping, due)

    def took(self, claim: Claim, cursor: Cursor, reply: DeliveryReply | None = None) -> None:
        """Record that everything up to a place was taken, or not wanted.

        Args:
            reply: how the last attempt ended; None if nothing was sent.

        Raises:
            LeaseLost: the webhook was deleted, or another process has it.
        """
        values: dict[str, Any] = {"cursor_xact": cursor.xact, "cursor_id": cursor.id}
        if reply is not None:
            values |= self._attempted(reply) | {"failures": 0, "failing_since": None}
        self._change(claim, values)

    def pinged(self, claim: Claim, reply: DeliveryReply) -> None:
        """Record how a ping ended. After one that arrived, waiting events are sent at once.

        Raises:
            LeaseLost: the webhook was deleted, or another process has it.
        """
        values = self._attempted(reply) | {"ping": False}
        if reply.ok:
            values |= {"next_attempt_at": clock(self._session)}
        self._change(claim, values)

    def failed(self, claim: Claim, reply: DeliveryReply) -> None:
        """Record a failure, and end the lease: the webhook waits, or is disabled.

        Raises:
            LeaseLost: the webhook was deleted, or another process has it.
        """
        pause_s = FIRST_PAUSE_S * 2.0 ** self._failures(claim)
        pause_s = min(LONGEST_PAUSE_S, pause_s) * random.uniform(0.75, 1.25)
        given_up = WebhookRow.failing_since <= clock(self._session, -GIVE_UP_S)
        words = f"no attempt has succeeded for {GIVE_UP_S / 86400:g} days; the last one: {reply.error}"
        reason = case((given_up, words), else_="")
        at = clock(self._session)
        disabled_at: Any = case((given_up, at), else_=None)
        if reply.gone:
            reason, disabled_at = "the receiver answered 410 Gone", at  # type: ignore[assignment]
        self._change(
            claim,
            self._attempted(reply)
            | {
                "failures": WebhookRow.failures + 1,
                "failing_since": func.coalesce(WebhookRow.failing_since, at),
                "next_attempt_at": clock(self._session, pause_s),
                "disabled_at": disabled_at,
                "disabled_reason": reason,
            }
            | _FREE,
        )

    def release(self, claim: Claim) -> None:
        """End the lease; the webhook goes behind the others that wait.

        Raises:
            LeaseLost: the webhook was deleted, or another process has it.
        """
        values = dict(_FREE)
        if claim.due:
            values["next_attempt_at"] = clock(self._session)
        self._change(claim, values)

    def finish(self, claim: Claim) -> None:
        """Delete the webhook of a job whose last event was sent."""
        self._session.execute(
            delete(WebhookRow).where(WebhookRow.id == claim.id, WebhookRow.lease_token == claim.token)
        )

    def catch_up(self) -> None:
        """Move webhooks without anything to send to the end, so that no look for events begins far back."""
        end = EventRepository(self._session).end()
        place = tuple_(WebhookRow.cursor_xact, WebhookRow.cursor_id)
        between = tuple_(EventRow.xact, EventRow.id) <= tuple_(end.xact, end.id)
        self._session.execute(
            update(WebhookRow)
            .where(WebhookRow.disabled_at.is_(None), self._is_free())
            .where(place < tuple_(end.xact, end.id), ~self._behind().where(between).exists())
            .values(cursor_xact=end.xact, cursor_id=end.id)
            .execution_options(synchronize_session=False)
        )

    def go_on_after_restore(self) -> None:
        """Put right the places that another Postgres server gave, whose dump was restored here."""
        if self._session.get_bind().dialect.name == "sqlite":
            return
        following = cast(cast(func.pg_snapshot_xmax(func.pg_current_snapshot()), Text), BigInteger)
        strange = WebhookRow.cursor_xact >= following
        if self._session.scalar(select(exists().where(strange))):
            EventRepository(self._session).put_restored_first()
            self._session.execute(update(WebhookRow).where(strange).values(cursor_xact=0))

    def _failures(self, claim: Claim) -> int:
        query = select(WebhookRow.failures).where(WebhookRow.id == claim.id)
        return min(20, self._session.scalar(query) or 0)

    def _attempted(self, reply: DeliveryReply) -> dict[str, Any]:
        at = clock(self._session)
        return {"last_attempt_at": at, "last_status": reply.status, "last_error": reply.error}

    def _change(self, claim: Claim, values: dict[str, Any]) -> None:
        query = update(WebhookRow).where(WebhookRow.id == claim.id, WebhookRow.lease_token == claim.token)
        changed = self._session.execute(
            query.values(values).returning(WebhookRow.id).execution_options(synchronize_session=False)
        ).one_or_none()
        if changed is None:
            raise LeaseLost(f"webhook {claim.id}")

    def _is_free(self) -> ColumnElement[bool]:
        until = WebhookRow.leased_until
        return or_(until.is_(None), until < clock(self._session))

    def _may_send(self) -> ColumnElement[bool]:
        return and_(WebhookRow.disabled_at.is_(None), WebhookRow.next_attempt_at <= clock(self._session))

    def _waiting(self) -> ColumnElement[bool]:
        found: ColumnElement[bool] = self._behind().where(final(self._session.get_bind())).exists()
        return found

    def _behind(self) -> Any:
        """Events behind a webhook's place, wanted or not."""
        place = tuple_(WebhookRow.cursor_xact, WebhookRow.cursor_id)
        return (
            select(EventRow.id)
            .join(JobRow, JobRow.id == EventRow.job_id)
            .where(JobRow.tenant == WebhookRow.tenant, tuple_(EventRow.xact, EventRow.id) > place)
            .where(or_(WebhookRow.job_id.is_(None), EventRow.job_id == WebhookRow.job_id))
            .correlate(WebhookRow)
        )


_FREE: dict[str, Any] = {"lease_token": None, "leased_until": None, "notified_at": None}
