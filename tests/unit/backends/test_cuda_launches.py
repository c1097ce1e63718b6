"""How the walk through buffer sets is divided into graphs, see `backends.graph_timed_device`."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from warpsmith.backends.base import Repeats, Watch
from warpsmith.backends.cuda.device import CudaDevice
from warpsmith.backends.cuda.program import CudaProgram
from warpsmith.backends.graph_timed_device import LONG_SAMPLE_US, launches_of_graph
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import DISTINCT_VARIANTS
from warpsmith.domain.jobs.plan import STEADY_LAUNCH_US
from warpsmith.sandbox.memory.rotation import Pair, rotation


@pytest.mark.parametrize(
    ("count", "launches", "once_us", "expected"),
    [
        (64, 64, 2.0, 64),
        (64, 48, 4.0, 64),
        (64, 47, 4.2, 32),
        (64, 10, 20.0, 32),
        (64, 1, 0.0, 32),
        (2, 1, 10_000.0, 2),
        (7, 1, 10_000.0, 7),
    ],
)
def test_a_quick_kernel_walks_through_half_of_the_sets_or_all(
    count: int, launches: int, once_us: float, expected: int
) -> None:
    assert launches_of_graph(count, launches, once_us) == expected


def test_a_slow_kernel_with_small_inputs_walks_in_short_steps() -> None:
    # All pairs of 8,192 bodies: 880 µs a launch, inputs of 128 KiB.
    assert launches_of_graph(64, 1, 880.0) == 2
    assert launches_of_graph(64, 1, 30_000.0) == 1


@pytest.mark.parametrize("count", [4, 6, 12, 48, 64, 128])
@pytest.mark.parametrize("once_us", [150.0, 700.0, 3000.0])
@pytest.mark.parametrize("launches", [1, 2, 5])
def test_steps_divide_the_walk_and_are_long_enough(count: int, once_us: float, launches: int) -> None:
    length = launches_of_graph(count, launches, once_us)
    assert count % length == 0, "every launch of the walk is in one graph"
    assert length >= min(launches, count)
    if length < count // 2:
        assert 2 * length * once_us > LONG_SAMPLE_US, "no shorter than it has to be"


class Replays:
    """Stands for the GPU: launches in the order in which they run, by what they were given."""

    def __init__(self, once_us: float) -> None:
        self.ran: list[Pair] = []
        self.samples: list[list[Pair]] = []
        self.alive: list[int] = []
        self.restored: list[int] = []
        """Places in `ran` at which everything was restored."""
        self._once_us = once_us
        self._graphs: list[list[Pair]] = []
        self._capturing = False

    def enqueue(self, _program: object, pair: Pair, _size: object) -> None:
        (self._graphs[-1] if self._capturing else self.ran).append(pair)

    def capture(self, launches: Sequence[Callable[[], None]]) -> int:
        self._graphs.append([])
        self._capturing = True
        for launch in launches:
            launch()
        self._capturing = False
        self.alive.append(len(self._graphs) - 1)
        return self.alive[-1]

    def replay_us(self, graph: int) -> float:
        self.ran += self._graphs[graph]
        self.samples.append(self._graphs[graph])
        return len(self._graphs[graph]) * self._once_us

    def once_us(self, launch: Callable[[], None]) -> float:
        launch()
        return self._once_us

    def destroy(self, graph: int) -> None:
        self.alive.remove(graph)


def timed(
    pairs: Sequence[Pair],
    once_us: float,
    samples: int,
    replays: Replays,
    in_place: bool = False,
    known: bool = False,
) -> tuple[int, int]:
    """Launches of a sample, and how many launches ran before the first of them."""
    device = CudaDevice.__new__(CudaDevice)
    before = 0
    fields: dict[str, Any] = {
        "_timer": replays,
        "_warm": True,
        "_enqueue": replays.enqueue,
        "_finish": lambda: None,
    }
    device.__dict__.update(fields)

    class Counts:
        def before(self, sample: int | None, launches: int) -> None:
            nonlocal before
            replays.restored.append(len(replays.ran))
            if sample == 0:
                before = len(replays.ran)

        def after(self, sample: int) -> None:
            pass

    program = CudaProgram.__new__(CudaProgram)
    arguments = cast("Any", pairs)
    times, launches = device.time(
        program,
        arguments,
        LaunchSize((1, 1, 1), (1, 1, 1)),
        Repeats(lambda _sample_us: samples, 0, lambda times: False, once_us * known, in_place),
        cast("Watch", Counts()),
    )
    assert times == [once_us] * samples
    assert replays.alive == [], "every graph is freed"
    return launches, before


@pytest.mark.parametrize("once_us", [3.0, 40.0, 90.0, 880.0, 5_000.0])
@pytest.mark.parametrize("sets", [2, 4, 32])
@pytest.mark.parametrize("samples", [4, 9, 40])
def test_no_launch_finds_the_answer_to_its_own_inputs(once_us: float, sets: int, samples: int) -> None:
    pairs = rotation(sets, apart=True)
    start = 0
    left: dict[int, int] = {}
    # One timing after the other, as trials do, each from where the last one ended.
    for _ in range(5):
        replays = Replays(once_us)
        turned = [*pairs[start:], *pairs[:start]]
        # A check leaves the answer to set 0 in set 0.
        left[0] = 0
        launches, before = timed(turned, once_us, samples, replays)
        assert replays.ran[before:] == [turned[i % len(pairs)] for i in range(samples * launches)]
        for n, pair in enumerate(replays.ran):
            value = pair.inputs % DISTINCT_VARIANTS
            assert n < before or left.get(pair.outputs) != value
            left[pair.outputs] = value
        start = (start + samples * launches) % len(pairs)


@pytest.mark.parametrize("sets", [4, 32])
@pytest.mark.parametrize("samples", [1, 3])
def test_a_long_launch_that_was_timed_before_is_timed_without_another(sets: int, samples: int) -> None:
    pairs = rotation(sets, apart=True)
    start = 0
    left: dict[int, int] = {}
    for turn in range(6):
        replays = Replays(STEADY_LAUNCH_US)
        turned = [*pairs[start:], *pairs[:start]]
        launches, before = timed(turned, STEADY_LAUNCH_US, samples, replays, known=turn > 0)
        assert launches == 1
        assert before == (0 if turn else len(replays.ran) - samples)
        for pair in replays.ran[before:]:
            value = pair.inputs % DISTINCT_VARIANTS
            assert left.get(pair.outputs) != value
            left[pair.outputs] = value
        start = (start + samples) % len(pairs)


@pytest.mark.parametrize("once_us", [3.0, 500.0, 880.0, 24_000.0])
@pytest.mark.parametrize("sets", [1, 2, 6, 64])
def test_in_place_no_set_is_launched_twice_before_it_is_restored(once_us: float, sets: int) -> None:
    pairs = rotation(sets, apart=False)
    replays = Replays(once_us)
    launches, before = timed(pairs, once_us, 9, replays, in_place=True)
    assert replays.ran[before:] == [pairs[i % sets] for i in range(9 * launches)]
    places = [*replays.restored, len(replays.ran)]
    assert places[0] == 0, "nothing runs on what an earlier timing left"
    for start, stop in itertools.pairwise(places):
        assert len({p.inputs for p in replays.ran[start:stop]}) == stop - start


def test_in_place_a_sample_has_every_set_unless_a_launch_is_long() -> None:
    def launches(once_us: float) -> int:
        return timed(rotation(64, apart=False), once_us, 9, Replays(once_us), in_place=True)[0]

    assert [launches(us) for us in (3.0, 300.0, 880.0, 24_000.0)] == [64, 64, 32, 1]
