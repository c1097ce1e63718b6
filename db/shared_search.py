"""Several slices of one search: one of them proposes, all of them claim what was proposed and run it.

Whoever holds the lock of a search proposes into a pool of rows, no more than the search may have, and
hears of everything that was finished. When it ends or dies another slice takes over and catches up. The
unique key of (candidate, configuration) decides, so nothing runs twice even where two believe to hold
the lock; so that these do not spend too much, the lock is looked at before every proposal.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta

from sqlalchemy.exc import DBAPIError

from db.engine import Database, utc_now, without_waiting_for_the_disk
from db.named_lock import Held, alone
from db.repositories.candidates import CandidateRepository
from db.repositories.events import EventRepository
from db.repositories.search_histories import HistoryRepository
from db.repositories.trials import TrialRepository
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.tuning.ports import Searcher

HEAR_S = 1.0
"""How often the proposing slice asks what the others have found; they commit as often."""
LATE_S = 5.0
"""A commit may become visible so much later than the time that it carries."""
AHEAD_S = 0.25
"""A slice claims as much at once as it runs in this time."""
MOST_AHEAD = 32
PROPOSE = 4
"""Configurations proposed before the others get to see them."""
NUMBERS = 64
"""Trial numbers taken at once; those that are not used stay unused."""
WAIT_S, LONGEST_WAIT_S = 0.01, 0.1
LEAD_S = 0.5
"""How often a slice without work asks whether anybody still proposes."""
PATIENCE_S = 10.0
SETTLED = "settled"
"""Kind of the event that says that a search has nothing more to propose: `trials` says how many it may
have where all of them are proposed, and is null where the searcher has no more."""


class SharedSearcher(Searcher):
    """Implements `tuning.ports.Searcher` over another: what it hands out, no other slice runs.

    Call `close` in the end.

    Args:
        owned: configurations that this slice has claimed before; they come first.
        started: what was finished before this is in the searcher's history.
        trials: how many the candidate may have in all, those of before included.
        alive: False: the slice is to end.
    """

    def __init__(
        self,
        inner: Searcher,
        database: Database,
        job_id: str,
        candidate_id: str,
        task_id: str,
        owned: Sequence[Configuration],
        started: datetime,
        trials: int,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        self.gave_up = False
        """Nothing was handed out although the search goes on."""
        self.spent = False
        """All trials that the candidate may have are proposed."""
        self._inner = inner
        self._database = database
        self._ids = (job_id, candidate_id, task_id)
        self._since = started - timedelta(seconds=LATE_S)
        self._trials = trials
        self._room = 0
        """Of the slice that proposes: how many more it may."""
        self._alive = alive
        self._ready = deque(owned)
        self._known = {configuration_key(c) for c in owned}
        """Claimed by this slice, whether handed out or not."""
        self._told: set[int] = set()
        self._hear_at = self._lead_at = 0.0
        self._began = time.monotonic()
        self._given = 0
        self._numbers = range(0)
        self._others = 0
        self._lock = ExitStack()
        self._held: Held | None = None
        """Where this slice proposes."""
        self._exhausted = False

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`. Waits while another slice is about to propose."""
        asked_at, wait_s = time.monotonic(), WAIT_S
        while len(self._ready) < count:
            self._claim(count - len(self._ready))
            if len(self._ready) >= count or (self._ready and not self._leads()):
                break
            if self._lead():
                if not self._propose(count - len(self._ready)) and not self._take_leftover():
                    break
            elif self._settled():
                if not self._take_leftover():
                    break
            elif not self._alive() or time.monotonic() - asked_at > PATIENCE_S:
                self.gave_up = True
                break
            else:
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        granted = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        self._given += len(granted)
        if self._leads():
            self._fill_pool()
        return granted

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        self._inner.tell(configuration, value)

    def close(self) -> None:
        """Let another slice propose."""
        self._held = None
        # Where the database is away, the lock went with the connection.
        with suppress(DBAPIError):
            self._lock.close()

    def _ahead(self) -> int:
        """How many this slice runs in `AHEAD_S`, by its pace so far."""
        pace = self._given / max(time.monotonic() - self._began, AHEAD_S)
        return max(1, min(int(AHEAD_S * pace), MOST_AHEAD))

    def _claim(self, wanted: int) -> None:
        with self._database.write() as session:
            without_waiting_for_the_disk(session)
            claimed = TrialRepository(session).claim_pooled(*self._ids[1:], max(wanted, self._ahead()))
        self._own(claimed)

    def _take_leftover(self) -> bool:
        """What slices that have ended had claimed and did not run, once there is nothing else."""
        before = len(self._ready)
        with self._database.write() as session:
            self._own(TrialRepository(session).take_leftover(*self._ids, pooled=False))
        return len(self._ready) > before

    def _own(self, claimed: Sequence[Configuration]) -> None:
        for configuration in claimed:
            key = configuration_key(configuration)
            if key not in self._known:
                self._known.add(key)
                self._ready.append(configuration)

    def _lead(self) -> bool:
        """Propose from now on, unless another slice does."""
        now = time.monotonic()
        if not self._leads() and now >= self._lead_at:
            self._lead_at = now + LEAD_S
            with ExitStack() as tried:
                self._held = tried.enter_context(alone(self._database, "search", self._ids[1], wait=False))
                if self._held is not None:
                    self._lock = tried.pop_all()
                    with self._database.read() as session:
                        self._room = self._trials - HistoryRepository(session).counted(self._ids[1])
        if self._held is not None and now >= self._hear_at:
            self._hear()
        return self._held is not None

    def _leads(self) -> bool:
        """Whether this slice proposes. Two that did would propose more than the search may have."""
        if self._held is not None and not self._held.holds():
            self.close()
        return self._held is not None

    def _fill_pool(self) -> None:
        """Keep as much proposed as the others run until this slice asks again."""
        if time.monotonic() >= self._hear_at:
            self._hear()
        if self._others == 0:
            return
        with self._database.read() as session:
            pooled = TrialRepository(session).pooled(self._ids[1])
        missing = 2 * self._others * self._ahead() - pooled
        while missing > 0 and self._leads() and self._propose(0, min(missing, PROPOSE)):
            missing -= PROPOSE

    def _propose(self, own: int, pool: int = 0) -> bool:
        """Ask the searcher, and store what nobody has proposed before; False: it has nothing more."""
        if self._exhausted or self.spent:
            return False
        job_id, candidate_id, task_id = self._ids
        self.spent = self._room <= 0
        asked = [] if self.spent else self._inner.ask(min(own + pool, self._room))
        if not asked:
            self._exhausted = not self.spent
            said = {"candidate": candidate_id, "trials": self._trials if self.spent else None}
            with self._database.write() as session:
                EventRepository(session).add(job_id, SETTLED, said)
            return False
        numbers = self._take_numbers(len(asked))
        with self._database.write() as session:
            without_waiting_for_the_disk(session)
            trials = TrialRepository(session)
            won = trials.propose_new(job_id, candidate_id, task_id if own else None, asked, numbers)
        self._room -= len(won)
        if own:
            self._own(won)
        return True

    def _take_numbers(self, count: int) -> Sequence[int]:
        if len(self._numbers) < count:
            # Apart from the proposals: whoever proposes must not wait for whoever commits results.
            more = max(count, NUMBERS)
            with self._database.write() as session:
                without_waiting_for_the_disk(session)
                first = TrialRepository(session).take_numbers(self._ids[0], more)
            self._numbers = range(first, first + more)
        taken, self._numbers = self._numbers[:count], self._numbers[count:]
        return taken

    def _settled(self) -> bool:
        with self._database.read() as session:
            said = EventRepository(session).of_kind(self._ids[0], SETTLED)
        ends = [e.data.get("trials") for e in said if e.data["candidate"] == self._ids[1]]
        self.spent = self._trials in ends
        return self.spent or None in ends

    def _hear(self) -> None:
        now = utc_now()
        job_id, candidate_id, task_id = self._ids
        with self._database.read() as session:
            history = HistoryRepository(session)
            ids = set(history.finished_since(candidate_id, task_id, self._since)) - self._told
            results = history.results(sorted(ids))
            self._others = max(0, CandidateRepository(session).running_slices(job_id, candidate_id) - 1)
        for configuration, value in results:
            self._inner.tell(configuration, value)
        self._told |= ids
        self._since = now - timedelta(seconds=LATE_S)
        self._hear_at = time.monotonic() + HEAR_S
