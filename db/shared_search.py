"""Several slices of one search: one of them proposes, all of them claim what was proposed and run it.

The slice that holds the lock of a search proposes into a pool, no more than the search may have, and hears
of everything that was finished. When it ends or dies, another slice takes over and catches up. The lock is
looked at before every proposal, so that two slices never spend too much.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence

from db.proposal_pool import ProposalPool
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.tuning.ports import Searcher

HEAR_S = 1.0
"""How often the proposing slice asks for what the others have found; they commit as often."""
AHEAD_S = 0.25
"""A slice claims as many at once as it runs in this time."""
MOST_AHEAD = 32
PROPOSE = 4
"""Configurations proposed before the others get to see them."""
WAIT_S, LONGEST_WAIT_S = 0.01, 0.1
LEAD_S = 0.5
"""How often a slice without work asks whether anybody still proposes."""
PATIENCE_S = 10.0


class SharedSearcher(Searcher):
    """A searcher over another: what it hands out, no other slice runs. Call `close` in the end.

    It has no forecast: what its slice compiles early, another slice may claim.

    Args:
        inner: proposes, while this slice holds the lock.
        pool: the proposals of all slices.
        owned: configurations that this slice has claimed before; they come first.
        alive: False: the slice is to end.
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
        """Nothing was handed out although the search goes on."""
        self.spent = False
        """All trials that the candidate may have are proposed."""
        self._inner = inner
        self._room = 0
        """Of the slice that proposes: how many more it may propose."""
        self._alive = alive
        self._ready = deque(owned)
        self._known = {configuration_key(c) for c in owned}
        """Claimed by this slice, whether handed out or not."""
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

    def close(self) -> None:
        """Let another slice propose."""
        self.pool.unlock()

    def _must_wait(self, count: int, asked_at: float) -> bool:
        """Get `count` configurations ready, or what there is; True: another slice is about to propose."""
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
        """How many this slice runs in `AHEAD_S`, by its pace so far."""
        pace = self._given / max(time.monotonic() - self._began, AHEAD_S)
        return max(1, min(int(AHEAD_S * pace), MOST_AHEAD))

    def _claim(self, wanted: int) -> None:
        self._own(self.pool.claim(max(wanted, self._ahead())))

    def _take_leftover(self) -> bool:
        """What slices that have ended had claimed and did not run, once there is nothing else."""
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
        """Propose from now on, unless another slice does."""
        now = time.monotonic()
        if not self._leads() and now >= self._lead_at:
            self._lead_at = now + LEAD_S
            if self.pool.lock():
                self._room = self.pool.room()
        if self.pool.is_locked and now >= self._hear_at:
            self._hear()
        return self.pool.is_locked

    def _leads(self) -> bool:
        """Whether this slice proposes. Two that did would propose more than the search may have."""
        return self.pool.still_locked()

    def _fill_pool(self) -> None:
        """Keep as much proposed as the others run until this slice asks again."""
        if time.monotonic() >= self._hear_at:
            self._hear()
        if self._others == 0:
            return
        missing = 2 * self._others * self._ahead() - self.pool.unclaimed()
        while missing > 0 and self._leads() and self._propose(0, min(missing, PROPOSE)):
            missing -= PROPOSE

    def _propose(self, own: int, pool: int = 0) -> bool:
        """Ask the searcher, and store what nobody has proposed before; False: it has nothing more."""
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
        """Whether the slice that proposes has said that it proposes nothing more."""
        self.spent, exhausted = self.pool.settled()
        return self.spent or exhausted

    def _hear(self) -> None:
        self._others = self.pool.other_slices()
        for configuration, value in self.pool.results():
            self._inner.tell(configuration, value)
        self._hear_at = time.monotonic() + HEAR_S
