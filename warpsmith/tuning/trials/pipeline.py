"""The next configurations of a slice, requested just early enough for their binaries to be ready."""

import math
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial

from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.ports import Searcher, TrialSink
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.trials.speculative_compiler import Pending, SpeculativeCompiler

FIRST_AHEAD = 4
"""Configurations in preparation before the times of compiling and running are known."""
SMOOTHING = 0.2
SLACK = 1.5
"""Safety factor: compilations differ in length, and the device must not wait for the slow ones."""


__all__ = ["Pending", "SliceLimits", "TrialPipeline"]


@dataclass(frozen=True)
class SliceLimits:
    """Limits at which a slice ends by itself."""

    seconds: float
    trials: int
    compile_ahead: int
    """Limit on the configurations that compile or wait while one is on the device."""


class TrialPipeline:
    """Keeps the compilers just busy enough.

    A configuration in preparation was proposed without the results that arrive before it runs. So no more are
    requested than compile in the time that the device needs for one.
    """

    def __init__(
        self,
        session: DeviceSession,
        template: Template,
        searcher: Searcher,
        sink: TrialSink,
        limits: SliceLimits,
        leftover: list[Configuration],
    ) -> None:
        self._session = session
        self._searcher = searcher
        self._sink = sink
        self._speculative = SpeculativeCompiler(session, template, searcher)
        self._most = max(1, limits.compile_ahead)
        self._leftover = leftover
        self._queue: deque[Pending] = deque()
        self._compile_s: float | None = None
        self._device_s: float | None = None

    def begin(self, first: Configuration) -> None:
        """Compile what is likely to follow `first`, while that compiles and runs."""
        if not self._session.info.shares_host:
            self._speculative.top_up(self._at_once - 1, [first])

    def next(self, wanted: int, waits: bool = True) -> Pending | None:
        """The next configuration to run, whose binary is ready; None if there is none.

        Args:
            waits: wait for the first binary of those that compile. One that takes long holds up no other.
        """
        shares_host = self._session.info.shares_host
        if not self._queue or not shares_host:
            self._fill(wanted)
        if not shares_host:
            idle = self._at_once - sum(not p.compiled.done() for p in self._queue)
            self._speculative.top_up(min(idle, wanted - len(self._queue)))
        if self._queue and (waits or shares_host):
            wait([p.compiled for p in self._queue], None, ALL_COMPLETED if shares_host else FIRST_COMPLETED)
        ready = next((p for p in self._queue if p.compiled.done()), None)
        if ready is not None:
            self._queue.remove(ready)
        return ready

    @property
    def is_empty(self) -> bool:
        """True if nothing that was requested is left."""
        return not self._queue

    def device_s(self, seconds: float) -> None:
        """Record the device time of a trial in seconds."""
        self._device_s = _smoothed(self._device_s, seconds)

    @property
    def _at_once(self) -> int:
        """Number of configurations that compile at once: half of those that may wait."""
        return -(-self._most // 2)

    def _ahead(self) -> int:
        if self._session.info.shares_host:
            return self._most
        if self._compile_s is None or self._device_s is None:
            return min(self._most, FIRST_AHEAD)
        return min(self._most, 2 + math.ceil(SLACK * self._compile_s / max(self._device_s, 1e-4)))

    def _fill(self, wanted: int) -> None:
        count = min(self._ahead(), wanted) - len(self._queue)
        if count <= 0:
            return
        fresh = list(self._take_leftover(count))
        if len(fresh) < count:
            asked = list(self._searcher.ask(count - len(fresh)))
            self._sink.proposed(asked)
            fresh += asked
        for configuration in fresh:
            pending = self._speculative.compile(configuration)
            pending.compiled.add_done_callback(partial(self._note_compiled, time.monotonic()))
            self._queue.append(pending)

    def _note_compiled(self, submitted: float, done: "Future[Compiled | Rejected]") -> None:
        self._compile_s = _smoothed(self._compile_s, time.monotonic() - submitted)

    def _take_leftover(self, count: int) -> Iterator[Configuration]:
        while self._leftover and count > 0:
            count -= 1
            yield self._leftover.pop(0)


def _smoothed(old: float | None, new: float) -> float:
    return new if old is None else old + SMOOTHING * (new - old)
