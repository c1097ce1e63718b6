"""Keeps the lease of a claimed task during its work."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from db.engine import Database
from db.repositories.device_waits import WaitRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from warpsmith.errors import LeaseLost

LOOK_S = 0.5
"""Seconds after which a cancelled job is noticed."""


class Lease:
    """Renews the lease of a task in a background thread, until the block ends.

    Args:
        worker: id of the worker row; once that worker is told to stop, `alive` is False.
        lease_s: seconds for which a renewal holds.
        renew_s: seconds between renewals; the lease is checked at least every `LOOK_S`.
        on_lost: called once, in that thread, when the lease is lost.
    """

    def __init__(
        self,
        database: Database,
        task_id: str,
        token: str,
        worker: str,
        lease_s: float,
        renew_s: float,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.task_id = task_id
        self.token = token
        self.lease_s = lease_s
        self._database = database
        self._worker = worker
        self._renew_s = renew_s
        self._on_lost = on_lost
        self._lost = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._counted_s = time.monotonic()
        self._held_until = self._counted_s + lease_s
        self._thread = threading.Thread(target=self._keep, name=f"lease-{task_id}", daemon=True)

    @property
    def lost(self) -> bool:
        """True once another worker owns the task, or its job has ended."""
        return self._lost.is_set()

    @property
    def stopping(self) -> bool:
        """True once this worker has to stop."""
        return self._stopping.is_set()

    def alive(self) -> bool:
        """True while the work should continue."""
        return not (self.lost or self.stopping)

    def lose(self) -> None:
        """Record that a fenced write has failed."""
        self._lost.set()

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if not self.lost:
            self._count()

    def _keep(self) -> None:
        due = time.monotonic() + self._renew_s
        while not self._ended.wait(min(LOOK_S, max(0.0, due - time.monotonic()))):
            try:
                if time.monotonic() >= due:
                    due = time.monotonic() + self._renew_s
                    self._renew()
                elif self.lost or not self._is_held():
                    raise LeaseLost(f"task {self.task_id}")
            except LeaseLost:
                self._drop()
                return
            except DBAPIError as exc:
                self._database.waits(f"the lease of task {self.task_id}", exc)
                if time.monotonic() > self._held_until:
                    self._drop()
                    return

    def _drop(self) -> None:
        self._lost.set()
        self._on_lost()

    def _is_held(self) -> bool:
        try:
            with self._database.read() as session:
                return TaskRepository(session).is_held(self.task_id, self.token)
        except DBAPIError:
            return True  # the next renewal says more

    def _count(self) -> None:
        """Count the job's time, before a decision reads it."""
        try:
            with self._database.write() as session:
                self._counted(session)
        except DBAPIError as exc:
            self._database.waits("a count of seconds", exc)

    def _counted(self, session: Session) -> None:
        at_s = time.monotonic()
        WaitRepository(session).count(at_s - self._counted_s, self.task_id)
        self._counted_s = at_s

    def _renew(self) -> None:
        with self._database.write() as session:
            TaskRepository(session).renew(self.task_id, self.token, self.lease_s)
            self._counted(session)
            stopping = WorkerRepository(session).is_stopping(self._worker)
        self._held_until = time.monotonic() + self.lease_s
        if stopping:
            self._stopping.set()
