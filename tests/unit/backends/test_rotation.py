"""Which inputs and outputs timed launches get, and what outputs hold before."""

import itertools
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pytest

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.memory import DISTINCT_VARIANTS
from warpsmith.domain.jobs.plan import TimingPlan
from warpsmith.sandbox.children.timed_launch_check import TimedWatch
from warpsmith.sandbox.memory.rotation import Pair, left_behind, rotation, walked
from warpsmith.sandbox.memory.spoiling import poison_word, spoil
from warpsmith.sandbox.memory.symbols import Symbols


@pytest.mark.parametrize("sets", [2, 4, 6, 10, 52, 64])
@pytest.mark.parametrize("launches", [1, 2, 3, 7, 64, 104])
def test_no_launch_finds_the_answer_to_its_own_inputs(sets: int, launches: int) -> None:
    pairs = rotation(sets, apart=True)
    there: dict[int, int] = {}
    for sample in range(40):
        for pair in walked(pairs, sample, launches):
            values = pair.inputs % DISTINCT_VARIANTS
            assert there.get(pair.outputs) != values
            there[pair.outputs] = values


@pytest.mark.parametrize("sets", [2, 4, 6, 52])
def test_every_set_has_its_turn_equally_often(sets: int) -> None:
    pairs = rotation(sets, apart=True)
    turns = [sum(p.inputs == i for p in pairs) for i in range(sets)]
    assert len(set(turns)) == 1
    assert {p.inputs for p in pairs[:sets]} == set(range(sets))


def test_a_single_set_and_sets_that_are_restored_stay_together() -> None:
    assert rotation(1, apart=True) == (Pair(0, 0),)
    assert rotation(6, apart=False) == tuple(Pair(i, i) for i in range(6))


def test_what_is_left_behind_is_what_was_written_last() -> None:
    run = [Pair(0, 0), Pair(1, 1), Pair(0, 1), Pair(1, 0)]
    assert set(left_behind(run)) == {Pair(0, 1), Pair(1, 0)}
    assert list(itertools.chain(*(walked(run, s, 3) for s in range(4)))) == run * 3


@pytest.mark.parametrize(("dtype", "least"), [(np.float16, 8192.0), (np.float32, 1e28), (np.float64, 1e200)])
def test_poison_is_nothing_like_zero(dtype: type, least: float) -> None:
    words = [poison_word() for _ in range(2000)]
    values = np.abs(np.frombuffer(b"".join(2 * word for word in words), dtype))
    assert np.isfinite(values).all()
    assert values.min() >= least
    assert len(set(words)) > 1990


class Bytes:
    """Memory that is a byte array."""

    def __init__(self, size_bytes: int) -> None:
        self.data = bytearray(size_bytes)

    def read(self, offset: int, size_bytes: int) -> bytes:
        return bytes(self.data[offset : offset + size_bytes])

    def write(self, data: np.ndarray, offset: int) -> None:
        self.data[offset : offset + data.nbytes] = data.tobytes()


def test_marks_beside_elements_are_left_without_them_at_times() -> None:
    """A mark behind each row of 64 says that the last element of the row is there."""
    parted = 0
    for _ in range(60):
        memory = Bytes(8 + 65 * 40 * 4 + 8)
        spoil(cast("Any", memory), 8, 65 * 40 * 4, 4, [(0, 65 * 40)])
        assert not any(memory.data[:8]) and not any(memory.data[-8:])
        rows = np.frombuffer(bytes(memory.data[8:-8]), np.uint32).reshape(40, 65) != 0
        assert rows.any() and not rows.all()
        parted += bool((rows[:, 63] & ~rows[:, 64]).sum() > 4)
    assert 5 < parted < 40, "one in three"


class InPlaceBuffers:
    """Remembers in which order sets were restored and spoiled."""

    in_place = True

    def __init__(self) -> None:
        self.restored: list[list[int]] = []
        self.spoiled: list[list[int]] = []

    def restore(self, indices: list[int]) -> None:
        self.restored.append(list(indices))

    def poison(self, indices: list[int]) -> None:
        self.spoiled.append(list(indices))


@pytest.mark.parametrize("launches", [1, 3, 8])
def test_before_every_sample_in_place_all_sets_are_restored_and_those_launched_next_come_first(
    launches: int,
) -> None:
    buffers, pairs = InPlaceBuffers(), rotation(8, apart=False)
    plan, symbols = TimingPlan(CacheState.COLD, samples=9), Symbols(cast("Any", None), (), cast("Any", None))
    nothing: Any = None
    watch = TimedWatch(cast("Any", buffers), plan, pairs, nothing, symbols, nothing)
    watch.before(None, 1)
    for sample in range(9):
        watch.before(sample, launches)
        coming = [pair.inputs for pair in walked(pairs, sample, launches)]
        assert buffers.restored[-1][:launches] == coming
    # A launch that worked ahead in sets of later samples has done so in vain.
    assert all(sorted(order) == list(range(8)) for order in buffers.restored)
    assert buffers.spoiled == buffers.restored
    assert len(buffers.restored) == 10


class FreshBuffers(InPlaceBuffers):
    """Remembers which sets have inputs that no launch had."""

    def __init__(self, *, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        self.new: set[int] = set()
        self.times = 0

    def restore(self, indices: list[int]) -> None:
        self.new -= set(indices)

    def refresh(self, indices: Iterable[int]) -> None:
        self.new |= set(indices)
        self.times += 1


class Caches:
    """Counts how often they are filled with something else."""

    filled = 0

    def fill_caches(self) -> None:
        """See `OtherMemory`."""
        self.filled += 1


@pytest.mark.parametrize(
    ("in_place", "sets", "launches", "times"),
    [
        (False, 24, 8, 1),
        (False, 16, 8, 2),
        (False, 8, 8, 3),
        (False, 2, 1, 2),
        (True, 24, 8, 3),
        (True, 8, 8, 3),
    ],
)
@pytest.mark.parametrize("cache", list(CacheState))
def test_no_launch_of_a_block_has_inputs_of_an_earlier_one(
    in_place: bool, sets: int, launches: int, times: int, cache: CacheState
) -> None:
    buffers, pairs, caches = FreshBuffers(in_place=in_place), rotation(sets, apart=False), Caches()
    plan = TimingPlan(cache, samples=3, launches=launches, fresh=True)
    nothing: Any = None
    symbols = Symbols(nothing, (), nothing)
    watch = TimedWatch(cast("Any", buffers), plan, pairs, nothing, symbols, cast("Any", caches))
    for sample in range(3):
        watch.before(sample, launches)
        launched = {pair.inputs for pair in walked(pairs, sample, launches)}
        assert launched <= buffers.new
        buffers.new -= launched
    assert buffers.times == times
    assert caches.filled == (times if cache is CacheState.COLD else 0)
    assert not buffers.new, "none is written in vain"
