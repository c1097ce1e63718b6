"""Several slices of one search: one proposes, all claim proposals and run them.

The slice with the lock of a search proposes into a pool, up to the search's limit, and is told all results.
If it ends or dies, another slice takes over and catches up. The lock is checked before every proposal, so
that two slices never exceed the limit.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence

from db.search.proposal_pool import ProposalPool
from warpsmith.domain.state import SliceEnd
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.tuning.ports import Searcher

HEAR_S = 1.0
"""Seconds between queries of the proposing slice for the others' results, which commit as often."""
AHEAD_S = 0.25
"""Seconds of its work that a slice claims at once."""
MOST_AHEAD = 32
PROPOSE = 4
"""Number of configurations proposed before the others can see them."""
WAIT_S, LONGEST_WAIT_S = 0.01, 0.1
LEAD_S = 0.5
"""Seconds between checks of an idle slice whether any slice still proposes."""
PATIENCE_S = 10.0


class SharedSearcher(Searcher):
    """A searcher over another: what it hands out, no other slice runs. Call `close` in the end.

    It has no forecast: what its slice compiles early, another slice may claim.

    Args:
        inner: searcher that proposes while this slice has the lock.
        pool: the proposals of all slices.
        owned: configurations claimed earlier by this slice; they come first.
        alive: returns False if the slice has to end.
    """

    def __init__(
        self,
        inner: Searcher,
        pool: ProposalPool,
        owned: Sequence[Configuration] = (),
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        self.pool = pool
        self.gave_up = False
        """True if nothing was returned although the search continues."""
        self.spent = False
        """True if all trials of the candidate are proposed."""
        self._inner = inner
        self._room = 0
        """Number of further trials that the proposing slice may propose."""
        self._alive = alive
        self._ready = deque(owned)
        self._known = {configuration_key(c) for c in owned}
        """Keys of configurations claimed by this slice, whether returned or not."""
        self._hear_at = self._lead_at = 0.0
        self._began = time.monotonic()
        self._given = 0
        self._others = 0
        self._exhausted = False

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`. Waits while another slice is about to propose."""
        asked_at, wait_s = time.monotonic(), WAIT_S
        while self._must_wait(count, asked_at):
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

    @property
    def cut_off(self) -> SliceEnd | None:
        """See `tuning.ports.Searcher.cut_off`."""
        if self.spent:
            return SliceEnd.SPENT
        return SliceEnd.LIMIT if self.gave_up else None

    def close(self) -> None:
        """Let another slice propose."""
        self.pool.unlock()

    def _must_wait(self, count: int, asked_at: float) -> bool:
        """Prepare up to `count` configurations; True if another slice is about to propose."""
        while len(self._ready) < count:
            self._claim(count - len(self._ready))
            if len(self._ready) >= count or (self._ready and not self._leads()):
                return False
            if self._lead():
                found = self._propose(count - len(self._ready)) or self._take_leftover()
            elif self._settled():
                found = self._take_leftover()
            elif not self._alive() or time.monotonic() - asked_at > PATIENCE_S:
                self.gave_up = True
                return False
            else:
                return True
            if not found:
                return False
        return False

    def _ahead(self) -> int:
        """Number of trials that this slice runs in `AHEAD_S`, by its pace so far."""
        pace = self._given / max(time.monotonic() - self._began, AHEAD_S)
        return max(1, min(int(AHEAD_S * pace), MOST_AHEAD))

    def _claim(self, wanted: int) -> None:
        self._own(self.pool.claim(max(wanted, self._ahead())))

    def _take_leftover(self) -> bool:
        """Claim the unfinished proposals of ended slices once nothing else is left."""
        before = len(self._ready)
        self._own(self.pool.take_leftover())
        return len(self._ready) > before

    def _own(self, claimed: Sequence[Configuration]) -> None:
        for configuration in claimed:
            key = configuration_key(configuration)
            if key not in self._known:
                self._known.add(key)
                self._ready.append(configuration)

    def _lead(self) -> bool:
        """Become the proposing slice, unless another one is."""
        now = time.monotonic()
        if not self._leads() and now >= self._lead_at:
            self._lead_at = now + LEAD_S
            if self.pool.lock():
                self._room = self.pool.room()
        if self.pool.is_locked and now >= self._hear_at:
            self._hear()
        return self.pool.is_locked

    def _leads(self) -> bool:
        """True if this slice proposes. Two proposing slices would exceed the search's limit."""
        return self.pool.still_locked()

    def _fill_pool(self) -> None:
        """Keep as many proposals ready as the others run until this slice is called again."""
        if time.monotonic() >= self._hear_at:
            self._hear()
        if self._others == 0:
            return
        missing = 2 * self._others * self._ahead() - self.pool.unclaimed()
        while missing > 0 and self._leads() and self._propose(0, min(missing, PROPOSE)):
            missing -= PROPOSE

    def _propose(self, own: int, pool: int = 0) -> bool:
        """Ask the searcher and store new configurations; False if it has none."""
        if self._exhausted or self.spent:
            return False
        self.spent = self._room <= 0
        asked = [] if self.spent else self._inner.ask(min(own + pool, self._room))
        if not asked:
            self._exhausted = not self.spent
            self.pool.settle(exhausted=self._exhausted)
            return False
        won = self.pool.add(asked, claimed=own > 0)
        self._room -= len(won)
        if own:
            self._own(won)
        return True

    def _settled(self) -> bool:
        """True if the proposing slice has recorded that it proposes nothing more."""
        self.spent, exhausted = self.pool.settled()
        return self.spent or exhausted

    def _hear(self) -> None:
        self._others = self.pool.other_slices()
        for configuration, value in self.pool.results():
            self._inner.tell(configuration, value)
        self._hear_at = time.monotonic() + HEAR_S
