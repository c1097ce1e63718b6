"""How the walk through buffer sets is divided into graphs, see `backends.cuda_device`."""

import pytest

from warpsmith.backends.cuda_device import LONG_SAMPLE_US, launches_of_graph


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
