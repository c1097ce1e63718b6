"""Keeps the fleet running beside the pools: relay, sweeper, heartbeat.

Any number of these loops may run at once; each does the work that it finds undone.
"""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from db.engine import Database
from db.queue.broker import Notifier, relay
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.notifications.deliveries import DeliveryRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.remote_compilations import CompilationRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from warpsmith.settings import Settings

RELAY_S = 0.2
QUIET_S = 10.0
"""Seconds after which a message is sent again for an unclaimed task, or for an open job without activity."""
PRUNE_S = 600.0
WEBHOOK_S = 0.5
CATCH_UP_S = 60.0

log = logging.getLogger(__name__)


class MaintenanceLoop:
    """Call `tick` often; each duty runs when it is due."""

    def __init__(self, settings: Settings, database: Database, notifier: Notifier, worker_id: str) -> None:
        self._settings = settings
        self._database = database
        self._notifier = notifier
        self._worker_id = worker_id
        self._swept_s = time.monotonic()
        self.draining = False
        """True if an operator has told this worker to stop."""
        self.has_webhooks = False
        """True once there is a webhook, which needs its pool."""
        self._due: dict[Callable[[], object], tuple[float, float]] = {
            self.relay: (0.0, RELAY_S),
            self.sweep: (0.0, settings.sweep_s),
            self.heartbeat: (0.0, settings.renew_s),
            self.notify_webhooks: (0.0, WEBHOOK_S),
            self.catch_up: (0.0, CATCH_UP_S),
            self.prune: (time.monotonic() + PRUNE_S, PRUNE_S),
        }

    def tick(self) -> None:
        """Do what is due; an unavailable database is waited for."""
        for duty, (due, every_s) in self._due.items():
            if time.monotonic() < due:
                continue
            try:
                duty()
            except DBAPIError as exc:
                self._database.waits(duty.__name__, exc)
            self._due[duty] = (time.monotonic() + every_s, every_s)

    def relay(self) -> int:
        """Publish waiting messages of the outbox."""
        return relay(self._database, self._notifier)

    def sweep(self) -> None:
        """Take back expired leases, and send messages again for forgotten work."""
        at_s = time.monotonic()
        with self._database.write() as session:
            WaitRepository(session).count(at_s - self._swept_s)
            expired = TaskRepository(session).expire(self._settings.max_attempts)
            quiet = TaskRepository(session).notify_quiet(QUIET_S)
            idle = JobRepository(session).notify_idle(QUIET_S)
            unserved = WaitRepository(session).notify_unserved(QUIET_S)
        self._swept_s = at_s
        if expired or quiet or idle or unserved:
            words = "swept: %d leases, %d quiet tasks, %d idle jobs, %d that no worker can serve"
            log.info(words, len(expired), len(quiet), len(idle), len(unserved))

    def heartbeat(self) -> None:
        """Record that this worker is alive."""
        with self._database.write() as session:
            workers = WorkerRepository(session)
            workers.heartbeat(self._worker_id)
            self.draining = workers.is_stopping(self._worker_id)

    def notify_webhooks(self) -> None:
        """Send messages for webhooks that have something to send."""
        with self._database.read() as session:
            deliveries = DeliveryRepository(session)
            self.has_webhooks = self.has_webhooks or deliveries.any()
            due = self.has_webhooks and deliveries.due(1)
        if due:
            with self._database.write() as session:
                DeliveryRepository(session).notify_due()

    def catch_up(self) -> None:
        """Move webhooks that have nothing to send on."""
        if self.has_webhooks:
            with self._database.write() as session:
                DeliveryRepository(session).catch_up()

    def prune(self) -> None:
        """Delete old messages and binaries."""
        with self._database.write() as session:
            OutboxRepository(session).prune()
            CompilationRepository(session).prune()

    def begin(self, backends: list[str]) -> None:
        """Start: take over from dead workers of this machine, and send messages for all that waits."""
        with self._database.write() as session:
            workers = WorkerRepository(session)
            for row in workers.of_host(os.uname().nodename):
                if row.id != self._worker_id and not _runs(row.pid):
                    TaskRepository(session).expire_of(row.id, self._settings.max_attempts)
                    workers.stop(row.id)
            TaskRepository(session).notify_quiet(0.0)
            JobRepository(session).notify_idle(0.0)
            JobRepository(session).notify_unpinned(backends)
            WaitRepository(session).notify_unserved(0.0)
            DeliveryRepository(session).go_on_after_restore()

    def end(self) -> None:
        """End, after the pools: give back the tasks that they still held."""
        with self._database.write() as session:
            TaskRepository(session).give_back(self._worker_id)
        self.relay()


def _runs(pid: int) -> bool:
    """True if another process with that id runs. This process has just begun and does not count."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
        # A process that was killed but not yet waited for is still listed, as Z.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True
