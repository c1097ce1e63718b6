"""Launches and timing by replays of captured graphs, for back ends whose driver has such graphs (CUDA, HIP).

Single launches from Python cost some µs of host time each; launches inside a graph cost device time only.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from warpsmith.backends.base import Bound, Program, Repeats, Watch, launches_in_place
from warpsmith.domain.jobs.launch_size import LaunchSize

WARM_UP_S = 0.15
"""Seconds of launches before the first timing of a process: an idle H200 clocks at 345 MHz."""
SAMPLE_US = 200.0
"""Least length of a sample in µs, long against the overhead of the events around it."""
MOST_LAUNCHES = 64
"""Limit on the launches per sample."""
TRIES = 3
"""Single launches that estimate the time of one; the first is slow in the host."""
LONG_TRY_US = 10_000.0
"""Length in µs from which one launch is estimate enough: the host's share is negligible."""
LONG_REPLAY_US = 500.0
"""Length in µs from which one replay of a graph is warm-up enough."""
LONG_SAMPLE_US = 2000.0
"""Length in µs from which a sample gains nothing from further launches."""


class GraphReplays(Protocol):
    """Captures and replays launches on a stream of its own. Faults raise `DeviceFault`."""

    def capture(self, launches: Sequence[Callable[[], None]]) -> Any:
        """An executable graph of the launches, in order."""
        ...

    def replay_us(self, graph: Any) -> float:
        """Device time of one replay, in µs."""
        ...

    def once_us(self, launch: Callable[[], None]) -> float:
        """Device time of launches outside of a graph, in µs, what the host takes between them included."""
        ...

    def destroy(self, graph: Any) -> None:
        """Free an executable graph."""
        ...


Loaded = TypeVar("Loaded", bound=Program)


class GraphTimedDevice(ABC, Generic[Loaded]):
    """The part of `backends.base.Device` that launches and times."""

    _timer: GraphReplays
    _warm: bool
    """True once launches have brought the clocks up."""

    @abstractmethod
    def _own(self, program: Program) -> Loaded:
        """The program, which `load` of this device made."""

    @abstractmethod
    def _prepare(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Do what cannot be done within a capture."""

    @abstractmethod
    def _enqueue(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Launch once, or every launch of a sequence once, without waiting.

        Raises:
            LaunchRefused, DeviceFault: as `Device.launch` does.
        """

    @abstractmethod
    def _finish(self) -> None:
        """Wait for all launches. Raises `DeviceFault` if one faulted."""

    def launch(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """See `Device.launch`."""
        loaded = self._own(program)
        self._prepare(loaded, arguments, size)
        self._enqueue(loaded, arguments, size)
        self._finish()

    def time(
        self,
        program: Program,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        repeats: Repeats,
        watch: Watch,
    ) -> tuple[list[float], int]:
        """See `Device.time`: replays of a captured graph between two events; it has whole sequences."""
        loaded = self._own(program)
        self._prepare(loaded, argument_sets[-1], size)
        once_us, sets, launches = repeats.known_us, len(argument_sets), repeats.launches or 1
        if not once_us:
            watch.before(None, 1)
            self._enqueue(loaded, argument_sets[-1], size)
            self._finish()
            if repeats.in_place or not repeats.launches:
                launches, once_us = self._choose_launches(loaded, argument_sets, size, watch)
        if repeats.in_place:
            launches = launches_in_place(sets, once_us)
        count = repeats.samples(once_us * max(launches, launches_of_graph(sets, launches, once_us)))
        graphs, warming, launches = self._capture(loaded, argument_sets, size, launches, once_us, count)
        times: list[float] = []
        try:
            if not repeats.known_us:
                self._warm_up(warming, lambda: watch.before(None, launches), is_warm=repeats.is_warm)
            for sample in range(count):
                watch.before(sample, launches)
                times.append(self._timer.replay_us(graphs[sample % len(graphs)]) / launches)
                watch.after(sample)
                if repeats.stop(times):
                    break
        finally:
            for graph in graphs if warming is graphs else [*graphs, *warming]:
                self._timer.destroy(graph)
        return times, launches

    def _choose_launches(
        self, program: Loaded, argument_sets: Sequence[Sequence[Bound]], size: LaunchSize, watch: Watch
    ) -> tuple[int, float]:
        """Launches per sample, so that it is long against the events; and the time of one launch, µs."""
        once_us: list[float] = []
        while len(once_us) < TRIES and (not once_us or once_us[-1] < LONG_TRY_US):
            watch.before(None, 1)
            # The last set of the walk: the first sample must not find the result for its own inputs.
            once_us.append(self._timer.once_us(partial(self._enqueue, program, argument_sets[-1], size)))
        return int(max(1, min(MOST_LAUNCHES, SAMPLE_US / max(1.0, min(once_us))))), min(once_us)

    def _capture(
        self,
        program: Loaded,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        launches: int,
        once_us: float,
        samples: int,
    ) -> tuple[list[Any], list[Any], int]:
        """Graphs to replay in turn, graphs that warm up, and the number of launches of each.

        A graph starts anew with every replay, so together the graphs end where the walk through the sets
        ends. If the samples end before that, the last graph warms up: a launch must not find the result for
        its own inputs, and it would if the same launch had warmed up.
        """
        count = len(argument_sets)
        run = [partial(self._enqueue, program, arguments, size) for arguments in argument_sets]
        length = launches_of_graph(count, launches, once_us)
        if length == count:
            turns = max(1, round(launches / count))
            every = [self._timer.capture(turns * run)]
            return every, every, turns * count
        starts = range(0, count, length)
        whole = samples >= len(starts)
        graphs: list[Any] = []
        try:
            for start in starts if whole else (*starts[:samples], starts[-1]):
                graphs.append(self._timer.capture(run[start : start + length]))
        except BaseException:
            for graph in graphs:
                self._timer.destroy(graph)
            raise
        return (graphs, graphs, length) if whole else (graphs[:-1], graphs[-1:], length)

    def _warm_up(self, graphs: Sequence[Any], restore: Callable[[], None], *, is_warm: bool) -> None:
        """Warm up with two replays, or one of a long graph. The first timing of a process replays until the
        clocks are up, unless they are."""
        if self._replay_all(graphs, restore) < LONG_REPLAY_US and len(graphs) == 1:
            self._replay_all(graphs, restore)
        if self._warm or is_warm:
            self._warm = True
            return
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            self._replay_all(graphs, restore)
        self._warm = True

    def _replay_all(self, graphs: Sequence[Any], restore: Callable[[], None]) -> float:
        restore()
        return sum(self._timer.replay_us(graph) for graph in graphs)


def launches_of_graph(count: int, launches: int, once_us: float) -> int:
    """Launches of the walk that one graph has: a divisor of `count`, or all.

    Small inputs have many sets, and walking through all of them in every sample takes long for slow launches.

    Args:
        count: launches of the walk.
        launches: least number per sample, approximately.
        once_us: time of one launch, µs; 0 if unknown.
    """
    if count <= 2 or count % 2 or 4 * launches >= 3 * count:
        return count
    length = count // 2
    while length % 2 == 0 and length // 2 >= launches and length * once_us > LONG_SAMPLE_US:
        length //= 2
    return length
