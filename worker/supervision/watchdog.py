"""Detects a silent broker, and pools that take no messages."""

import logging
import time

from sqlalchemy.exc import DBAPIError

from db.engine import Database
from db.queue.broker import Notifier
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from worker.supervision.supervisor import Supervisor

PING_S = 1.0
SILENT_S = 3.0
"""Seconds without an answer after which the broker is not relied on."""
STEADY_S = 5.0
"""Seconds for which a broker must respond before the stand-ins end."""
DEAF_CHECK_S = 10.0
DEAF_S = 60.0
"""Seconds after which a pool is restarted that takes nothing while its queues have work."""

log = logging.getLogger(__name__)


class Watchdog:
    """Checks the broker and the pools; call `tick` often.

    Some Celery releases stop consuming after a restart of the broker, or take half a minute to reconnect;
    neither may stop the fleet.
    """

    def __init__(self, pools: Supervisor, notifier: Notifier, database: Database, worker_id: str) -> None:
        self._pools = pools
        self._notifier = notifier
        self._database = database
        self._worker_id = worker_id
        now = time.monotonic()
        self._changed_at = now
        self._answers = True
        self._silent = False
        self._ping_due = now
        self._deaf_due = now + DEAF_S

    def tick(self) -> None:
        """Check the broker and the pools if it is time."""
        now = time.monotonic()
        if now >= self._ping_due:
            self._listen()
            self._ping_due = time.monotonic() + PING_S
            self._retire_sick()
        if now >= self._deaf_due:
            self._look_for_deaf()
            self._deaf_due = time.monotonic() + DEAF_CHECK_S

    def _retire_sick(self) -> None:
        """End pools whose device has a fault, so that they take no messages that others could handle."""
        try:
            with self._database.read() as session:
                workers = WorkerRepository(session)
                sick = [
                    plan
                    for plan in self._pools.plans
                    if plan.device is not None and workers.has_put_aside(self._worker_id, plan.device)
                ]
        except DBAPIError:
            return
        for plan in sick:
            log.error("pool %s is retired with its device", plan.name)
            self._pools.retire(plan)

    def _listen(self) -> None:
        answers = self._notifier.answers()
        now = time.monotonic()
        if answers != self._answers:
            self._answers, self._changed_at = answers, now
        if not answers and not self._silent and now - self._changed_at >= SILENT_S:
            self._silent = True
            log.warning("the broker is silent")
        if answers and self._silent and now - self._changed_at >= STEADY_S:
            self._silent = False
            log.info("the broker answers again")
        self._pools.stand_in(self._silent)

    def _look_for_deaf(self) -> None:
        if self._silent:
            return
        for plan in self._pools.plans:
            try:
                with self._database.read() as session:
                    deaf = TaskRepository(session).deaf(self._worker_id, plan.queues, DEAF_S)
            except DBAPIError:
                return
            if deaf:
                log.error(
                    "pool %s took nothing for %g s while something waits; starting it again",
                    plan.name,
                    DEAF_S,
                )
                self._pools.restart(plan)
                self._deaf_due = time.monotonic() + DEAF_S
