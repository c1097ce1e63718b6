"""A task's wait for its device: the job's detail meanwhile, and the start of its paid time."""

import time

from db.queue.lease import Lease
from db.repositories.device_waits import WaitRepository
from db.tables import TaskRow
from warpsmith.errors import LeaseLost
from warpsmith.system.progress_marker import PROGRESS
from worker.device.process_context import Context

SAID_AFTER_S = 0.3
"""Seconds below which a wait is not reported."""


class Stopping(Exception):
    """This worker has to stop; the task goes back to its queue."""


class WaitForDevice:
    """Wait of a task for the device. Implements `worker.device.device_setup.Holding`."""

    def __init__(self, context: Context, row: TaskRow, lease: Lease) -> None:
        self._context = context
        self._job_id, self._task_id = row.job_id, row.id
        self._lease = lease
        self._said = ""
        self._began: float | None = None

    def waits(self, words: str) -> None:
        """Report that the task waits for the device.

        Raises:
            LeaseLost: another worker has the task, or its job has ended.
            Stopping: this worker has to stop.
        """
        if self._lease.lost:
            raise LeaseLost(f"task {self._task_id}")
        if self._lease.stopping:
            raise Stopping
        PROGRESS.moved()  # towards its turn
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if words == self._said or now - self._began < SAID_AFTER_S:
            return
        self._said = words
        with self._context.database.write() as session:
            WaitRepository(session).note(self._job_id, words)

    def has(self) -> None:
        """The task has the device."""
        with self._context.database.write() as session:
            WaitRepository(session).end(self._job_id, self._task_id)
