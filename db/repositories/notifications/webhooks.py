"""Webhooks of tenants: made, listed, deleted, resumed."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from db.engine import clock
from db.identifiers import new_id
from db.repositories.events import EventRepository
from db.tables import WebhookRow
from warpsmith.errors import NotFound
from warpsmith.webhooks.models import NewWebhook
from warpsmith.webhooks.signature import new_secret


class WebhookRepository:
    """Queries on the `webhook` table for the tenants that own its rows."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(self, wanted: NewWebhook, tenant: str) -> WebhookRow:
        """A new webhook, which gets the events from now on."""
        end = EventRepository(self._session).end()
        row = WebhookRow(
            id=new_id(),
            tenant=tenant,
            job_id=wanted.job,
            url=wanted.url,
            secret=new_secret(),
            kinds=wanted.kinds,
            cursor_xact=end.xact,
            cursor_id=end.id,
            created_at=clock(self._session),
            next_attempt_at=clock(self._session),
        )
        self._session.add(row)
        self._session.flush()
        return self.get(row.id)

    def get(self, webhook_id: str) -> WebhookRow:
        """Return a webhook.

        Raises:
            NotFound: the tenant has no such webhook.
        """
        query = select(WebhookRow).where(WebhookRow.id == webhook_id)
        row = self._session.scalars(query.execution_options(populate_existing=True)).one_or_none()
        if row is None:
            raise NotFound(f"no webhook {webhook_id}")
        return row

    def all(self) -> Sequence[WebhookRow]:
        """The webhooks of the tenant, oldest first."""
        return self._session.scalars(select(WebhookRow).order_by(WebhookRow.id)).all()

    def count(self) -> int:
        """Number of webhooks of the tenant."""
        return self._session.scalar(select(func.count(WebhookRow.id))) or 0

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook; an attempt that is under way is the last.

        Raises:
            NotFound: the tenant has no such webhook.
        """
        self.get(webhook_id)
        self._session.execute(delete(WebhookRow).where(WebhookRow.id == webhook_id))

    def enable(self, webhook_id: str) -> WebhookRow:
        """Resume a webhook where it stopped, at once.

        Raises:
            NotFound: the tenant has no such webhook.
        """
        return self._change(
            webhook_id,
            disabled_at=None,
            disabled_reason="",
            failures=0,
            failing_since=None,
            next_attempt_at=clock(self._session),
            notified_at=None,
        )

    def ping(self, webhook_id: str) -> WebhookRow:
        """Ask for a message that says nothing, whether the webhook is disabled or not.

        Raises:
            NotFound: the tenant has no such webhook.
        """
        return self._change(webhook_id, ping=True, notified_at=None)

    def _change(self, webhook_id: str, **values: object) -> WebhookRow:
        self._session.execute(update(WebhookRow).where(WebhookRow.id == webhook_id).values(**values))
        return self.get(webhook_id)
