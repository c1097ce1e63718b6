"""Notifications: Celery messages that carry a name and an id; a lost one does no harm."""

import logging
from typing import TYPE_CHECKING, Any

from celery import Celery
from kombu import compression
from kombu.exceptions import KombuError, OperationalError

from db.engine import Database
from db.message_names import CONTROL_QUEUE
from db.queue.file_transport import SCHEME, register
from db.repositories.outbox import OutboxRepository
from warpsmith.settings import Settings
from warpsmith.system.own_files import own_folder
from warpsmith.system.storage_errors import cause_of

if TYPE_CHECKING:
    from redis import Redis

POLL_S = 0.02
"""Interval in seconds at which the file-system transport looks for messages; its default is one second."""
VISIBILITY_S = 900
"""Seconds after which Redis delivers an unacknowledged message again; a claim then finds it a duplicate."""
CONNECT_TIMEOUT_S = 5
PING_TIMEOUT_S = 1

log = logging.getLogger(__name__)


def celery_app(settings: Settings) -> Celery:
    """The Celery application for these settings; the worker registers the tasks."""
    _refuse_compression()
    app = Celery("warpsmith", set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        task_default_queue=CONTROL_QUEUE,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        task_publish_retry=False,
        **_broker(settings),
    )
    return app


class Notifier:
    """Publishes messages. An unavailable broker is not an error, because the outbox keeps them.

    Create one per process, after any fork.
    """

    def __init__(self, settings: Settings) -> None:
        self._app = celery_app(settings)
        # A caller must not wait for an unavailable broker: the outbox is tried again soon.
        patience = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
        self._ping: Redis | None = None
        self._away: tuple[type[Exception], ...] = (KombuError, OperationalError, OSError)
        if settings.broker_url is not None:
            self._ping, error = _redis(settings.broker_url)
            self._away += (error,)
        self._app.conf.broker_transport_options = {**self._app.conf.broker_transport_options, **patience}

    def notify(self, name: str, queue: str, subject: str) -> bool:
        """Publish one message; False if the broker did not take it."""
        try:
            self._app.send_task(name, args=[subject], queue=queue, retry=False, ignore_result=True)
        except self._away as exc:
            log.warning("the broker took no message: %s", cause_of(exc))
            return False
        return True

    def answers(self) -> bool:
        """True if the broker responds. A file-system broker always does."""
        if self._ping is None:
            return True
        try:
            return bool(self._ping.ping())
        except self._away:
            return False

    def close(self) -> None:
        """Close the connections."""
        if self._ping is not None:
            self._ping.close()
        self._app.close()


def relay(database: Database, notifier: Notifier, limit: int = 50) -> int:
    """Publish waiting messages of the outbox, oldest first; returns how many the broker took.

    Any number of relays may run at once. A crash between publishing and the commit publishes twice.
    """
    with database.read() as session:
        if not OutboxRepository(session).any_waiting():
            return 0
    with database.write() as session:
        outbox = OutboxRepository(session)
        published = []
        for row in outbox.waiting(limit):
            if not notifier.notify(row.name, row.queue, row.subject):
                outbox.mark_failed([row.id])
                break
            published.append(row.id)
        outbox.mark_published(published)
    return len(published)


def _refuse_compression() -> None:
    """Have kombu refuse compressed messages: a few hundred bytes may unpack to gigabytes."""

    def refuse(_body: bytes) -> bytes:
        raise ValueError("compressed messages are refused")

    for content_type in list(compression.encoders()):  # type: ignore[no-untyped-call]
        compression.register(refuse, refuse, content_type)  # type: ignore[no-untyped-call]


def _broker(settings: Settings) -> dict[str, Any]:
    if settings.broker_url is not None:
        options: dict[str, Any] = {
            "visibility_timeout": VISIBILITY_S,
            "health_check_interval": 10,
            "socket_keepalive": True,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_timeout": 30,
        }
        return {"broker_url": settings.broker_url, "broker_transport_options": options}
    register()
    folder = settings.data_dir.absolute() / "broker"
    messages, control = folder / "messages", folder / "control"
    for each in (messages, control):
        own_folder(each)
    options = {
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "control_folder": str(control),
        "polling_interval": POLL_S,
    }
    return {"broker_url": f"{SCHEME}://localhost//", "broker_transport_options": options}


def _redis(url: str) -> "tuple[Redis, type[Exception]]":
    """A client that gives up soon, and the class of its errors."""
    # The embedded mode has no Redis, whose client takes long to import.
    from redis import Redis
    from redis.exceptions import RedisError

    timeouts = {"socket_connect_timeout": PING_TIMEOUT_S, "socket_timeout": PING_TIMEOUT_S}
    return Redis.from_url(url, **timeouts), RedisError
