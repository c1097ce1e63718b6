"""Bodies of the routes of webhooks, and of what is sent."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from warpsmith.domain.base import Frozen
from warpsmith.http_models import NO_NUL, EventView, JobStatus

Kind = Literal["state", "candidate", "task", "agent_request", "settled"]
"""Kinds of events; see `EventView`."""


class NewWebhook(Frozen):
    """A webhook to be made."""

    url: str = Field(min_length=1, max_length=2000, pattern=NO_NUL)
    """Address that gets the events: http or https, on the public internet."""
    kinds: tuple[Kind, ...] = Field(default=(), max_length=5)
    """Kinds of events to send; empty: all."""
    job: str | None = Field(default=None, max_length=64, pattern=NO_NUL)
    """Send events of this job only. The webhook is deleted after the job's last event."""


class WebhookView(Frozen):
    """A webhook, and how its last delivery went."""

    id: str
    url: str
    kinds: tuple[Kind, ...] = ()
    job: str | None = None
    created_at: datetime
    disabled_at: datetime | None = None
    """Time at which it was given up; `POST .../enable` resumes it where it stopped."""
    disabled_reason: str = ""
    pinging: bool = False
    """True while a ping waits to be sent."""
    failures: int = 0
    """Attempts in a row that failed."""
    next_attempt_at: datetime
    """Earliest time of the next attempt."""
    last_attempt_at: datetime | None = None
    last_status: int | None = None
    """HTTP status of the last attempt; null if there was no answer."""
    last_error: str = ""
    """Reason why the last attempt failed; empty if it did not."""


class WebhookCreated(WebhookView):
    """A new webhook."""

    secret: str
    """Key of its signatures (`whsec_...`); shown only here."""


class WebhookList(Frozen):
    """Webhooks of a tenant, oldest first."""

    items: tuple[WebhookView, ...]


class WebhookMessage(EventView):
    """Body of a delivery."""

    status: JobStatus | None = None
    """Final status of the job, with the event that ends it."""
