"""Stores the trials of a slice in batches, committed about once a second and fenced by the lease."""

import threading
from collections.abc import Sequence

from sqlalchemy.exc import DBAPIError

from db.engine import Database
from db.queue.lease import Lease
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import LeaseLost

COMMIT_S = 1.0
MAX_BATCH = 200


class DatabaseSink:
    """The `TrialSink` of one slice (see `tuning.ports`). Call `close` at the end.

    A thread commits, so that a finished trial is stored within a second even if the next one is slow. An
    unavailable database is waited for: trials stay in memory until it is back or the lease is lost.

    Args:
        claimed: True: the proposing slice stores proposals; see `db.search.shared_search`.
    """

    def __init__(
        self, database: Database, lease: Lease, job_id: str, candidate_id: str, claimed: bool = False
    ) -> None:
        self._claimed = claimed
        self._database = database
        self._lease = lease
        self._job_id = job_id
        self._candidate_id = candidate_id
        self._proposed: list[Configuration] = []
        self._finished: list[TrialResult] = []
        self._spent = False
        self._full = threading.Event()
        self._ended = threading.Event()
        self._buffers = threading.Lock()
        self._committing = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name=f"trials-{lease.task_id}", daemon=True)
        self._thread.start()

    def proposed(self, configurations: Sequence[Configuration]) -> None:
        """Record configurations that are about to run."""
        if self._claimed:
            return
        with self._buffers:
            self._proposed += configurations

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        """Record a finished trial. Once committed, within a second, it is never run again."""
        with self._buffers:
            self._finished.append(TrialResult(configuration, outcome, seconds))
            if len(self._finished) >= MAX_BATCH:
                self._full.set()

    def alive(self) -> bool:
        """False once the lease is lost, the job has ended, its trials are spent or the worker stops."""
        return self._lease.alive() and not self._spent

    def close(self) -> None:
        """Commit the remaining trials.

        Raises:
            LeaseLost: another worker has the task; uncommitted trials are dropped.
        """
        self._ended.set()
        self._full.set()
        self._thread.join()
        if self._lease.lost:
            raise LeaseLost(f"task {self._lease.task_id}")
        self._commit()

    def _keep(self) -> None:
        while not self._ended.is_set() and not self._lease.lost:
            self._full.wait(COMMIT_S)
            self._full.clear()
            try:
                self._commit()
            except LeaseLost:
                self._lease.lose()
            except DBAPIError as exc:
                self._database.waits("a batch of trials", exc)
                self._ended.wait(COMMIT_S)

    def _commit(self) -> None:
        with self._committing:
            with self._buffers:
                proposed, finished = list(self._proposed), list(self._finished)
            if not proposed and not finished:
                return
            with self._database.write() as session:
                TaskRepository(session).renew(self._lease.task_id, self._lease.token, self._lease.lease_s)
                trials = TrialRepository(session)
                trials.propose(self._job_id, self._candidate_id, proposed, self._lease.task_id)
                trials.finish(self._job_id, self._candidate_id, self._lease.task_id, finished)
                spent = JobRepository(session).trials_spent(self._job_id)
            with self._buffers:
                del self._proposed[: len(proposed)]
                del self._finished[: len(finished)]
            self._spent = spent
