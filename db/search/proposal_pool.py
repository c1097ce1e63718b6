"""The proposals of a shared search, and the lock of the slice that makes them.

The unique key of (candidate, configuration) decides: nothing runs twice, even if two slices believe that
they hold the lock.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.exc import DBAPIError

from db.engine import Database, now, without_waiting_for_the_disk
from db.named_lock import HeldLock, alone
from db.repositories.candidates import CandidateRepository
from db.repositories.search_histories import HistoryRepository, Told
from db.repositories.trials import TrialRepository
from warpsmith.domain.templates.space import Configuration

LATE_S = 5.0
"""Seconds by which a commit may become visible after its timestamp."""
NUMBERS = 64
"""Trial numbers taken at once; unused ones stay unused."""


@dataclass(frozen=True)
class SearchSlice:
    """A slice of a shared search."""

    job_id: str
    candidate_id: str
    task_id: str
    trials: int
    """Number of trials that the candidate may have in total, finished ones included."""
    started: datetime
    """Start of the slice; results finished before are in the searcher's history."""


class ProposalPool:
    """Proposals of one candidate that no slice has claimed, as one slice sees them."""

    def __init__(self, database: Database, of: SearchSlice) -> None:
        self.of = of
        self._database = database
        self._since = of.started - timedelta(seconds=LATE_S)
        self._told: set[int] = set()
        self._numbers = range(0)
        self._lock = ExitStack()
        self._held: HeldLock | None = None

    def claim(self, count: int) -> list[Configuration]:
        """Claim up to `count` proposals, which this slice then has to run."""
        with self._database.write() as session:
            without_waiting_for_the_disk(session)
            return TrialRepository(session).claim_pooled(self.of.candidate_id, self.of.task_id, count)

    def take_leftover(self) -> list[Configuration]:
        """Claim the proposals that ended slices had claimed and did not run."""
        of = self.of
        with self._database.write() as session:
            return TrialRepository(session).take_leftover(
                of.job_id, of.candidate_id, of.task_id, pooled=False
            )

    def unclaimed(self) -> int:
        """Number of proposals without a slice."""
        with self._database.read() as session:
            return TrialRepository(session).pooled(self.of.candidate_id)

    def room(self) -> int:
        """Number of trials that the candidate may have beyond the proposed ones."""
        with self._database.read() as session:
            return self.of.trials - HistoryRepository(session).counted(self.of.candidate_id)

    def add(self, configurations: Sequence[Configuration], *, claimed: bool) -> list[Configuration]:
        """Store configurations not proposed before; returns them.

        Args:
            claimed: True: this slice runs them; False: any slice may claim them.
        """
        of, numbers = self.of, self._take_numbers(len(configurations))
        owner = of.task_id if claimed else None
        with self._database.write() as session:
            without_waiting_for_the_disk(session)
            trials = TrialRepository(session)
            return trials.propose_new(of.job_id, of.candidate_id, owner, configurations, numbers)

    def settle(self, *, exhausted: bool) -> None:
        """Tell the other slices that nothing more will be proposed.

        Args:
            exhausted: the searcher has no more; False: all trials that the candidate may have are proposed.
        """
        with self._database.write() as session:
            candidates = CandidateRepository(session)
            candidates.settle(self.of.candidate_id, None if exhausted else self.of.trials)

    def settled(self) -> tuple[bool, bool]:
        """(True if all these trials are proposed, True if the searcher is exhausted), as a slice recorded
        it."""
        with self._database.read() as session:
            trials, exhausted = CandidateRepository(session).settled(self.of.candidate_id)
        return trials is not None and trials >= self.of.trials, exhausted

    def results(self) -> list[Told]:
        """Results of other slices since the last call, in the order of proposal."""
        with self._database.read() as session:
            at = now(session)
            history = HistoryRepository(session)
            finished = history.finished_since(self.of.candidate_id, self.of.task_id, self._since)
            ids = set(finished) - self._told
            results = history.results(sorted(ids))
        self._told |= ids
        self._since = at - timedelta(seconds=LATE_S)
        return results

    def other_slices(self) -> int:
        """Number of other running slices of the candidate."""
        with self._database.read() as session:
            running = CandidateRepository(session).running_slices(self.of.job_id, self.of.candidate_id)
        return max(0, running - 1)

    def lock(self) -> bool:
        """Try to become the proposing slice; False if another one is."""
        with ExitStack() as tried:
            self._held = tried.enter_context(
                alone(self._database, "search", self.of.candidate_id, wait=False)
            )
            if self._held is not None:
                self._lock = tried.pop_all()
        return self._held is not None

    @property
    def is_locked(self) -> bool:
        """True if this slice proposes, without checking the lock."""
        return self._held is not None

    def still_locked(self) -> bool:
        """True if this slice still has the lock, which is lost with the database's connection."""
        if self._held is not None and not self._held.holds():
            self.unlock()
        return self._held is not None

    def unlock(self) -> None:
        """Let another slice propose."""
        self._held = None
        # If the database is unavailable, the lock ended with the connection.
        with suppress(DBAPIError):
            self._lock.close()

    def _take_numbers(self, count: int) -> Sequence[int]:
        if len(self._numbers) < count:
            # Separate from the proposals: the proposing slice must not wait for those that commit results.
            more = max(count, NUMBERS)
            with self._database.write() as session:
                without_waiting_for_the_disk(session)
                first = TrialRepository(session).take_numbers(self.of.job_id, more)
            self._numbers = range(first, first + more)
        taken, self._numbers = self._numbers[:count], self._numbers[count:]
        return taken
