"""Boxes of shapes between workloads: which of them leave the baseline."""

import itertools
from collections.abc import Sequence

import pytest

from warpsmith.tuning.winners.shape_boxes import LEAST_BOX_GAIN, MOST_STEP, boxes, confirmed, server_of

FAST = 1.5
LEAST = 1 + LEAST_BOX_GAIN


def served(
    shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]], *speedups: Sequence[float]
) -> int | None:
    return server_of(shape, boxes(shapes, speedups, [LEAST] * len(shapes)))


def test_a_shape_between_two_that_agree_is_served() -> None:
    assert served((1536,), [(1024,), (2048,)], (FAST, FAST)) == 0


@pytest.mark.parametrize(
    ("shape", "why"),
    [((512,), "below all"), ((4096,), "above all"), ((1540,), "not as divisible")],
)
def test_what_nothing_speaks_for_keeps_the_baseline(shape: tuple[int, ...], why: str) -> None:
    assert served(shape, [(1024,), (2048,)], (FAST, FAST)) is None, why


def test_the_baseline_stays_between_neighbours_that_disagree() -> None:
    shapes = [(1024,), (2048,), (4096,)]
    assert served((1536,), shapes, (FAST, 0.9, FAST)) is None
    # A larger box around the shape that leaves out no workload does not help.
    assert served((3072,), shapes, (FAST, LEAST, FAST)) is None
    assert served((3072,), shapes, (0.5, FAST, FAST)) == 0


def test_one_workload_or_neighbours_far_apart_say_nothing() -> None:
    assert served((1024,), [(512,)], (FAST,)) is None
    far = int(1024 * MOST_STEP)
    assert served((2048,), [(1024,), (far,)], (FAST, FAST)) == 0
    assert served((2048,), [(1024,), (far + 1024,)], (FAST, FAST)) is None
    # One dimension suffices.
    assert served((2048, 64), [(1024, 64), (far + 1024, 64)], (FAST, FAST)) is None


def test_the_smallest_box_decides_and_every_workload_in_it_counts() -> None:
    grid = list(itertools.product((64, 128, 256), (64, 128, 256)))
    speedups = [FAST] * 9
    speedups[grid.index((128, 64))] = 0.8
    assert served((192, 192), grid, speedups) == 0
    assert served((96, 96), grid, speedups) is None
    # A dimension that does not differ between the workloads must be the same.
    assert served((128, 192), grid, speedups) == 0


def test_where_a_corner_is_unknown_more_is_asked_for() -> None:
    # The first corner is smaller than every workload: nothing says how a configuration does there.
    ends = [(256, 512), (512, 256)]
    assert served((256, 256), ends, (1.45, 1.45)) is None
    assert served((256, 256), ends, (1.55, 1.55)) == 0
    assert served((384, 384), [*ends, (256, 256), (512, 512)], (1.1, 1.1, 1.1, 1.1)) == 0
    # A line has two corners only, and both are workloads.
    assert served((256, 384), [(256, 256), (256, 512)], (1.1, 1.1)) == 0


def test_of_several_the_one_that_is_best_in_the_worst_case_serves() -> None:
    assert served((1536,), [(1024,), (2048,)], (3.0, 1.2), (1.4, 1.4)) == 1


def test_an_odd_workload_lets_odd_shapes_in() -> None:
    assert served((1537,), [(1023,), (2048,)], (FAST, FAST)) == 0


def test_a_shape_confirms_the_box_that_decides_about_it_and_no_other() -> None:
    found = boxes([(1024,), (2048,), (4096,)], [(FAST, FAST, FAST)], [LEAST] * 3)
    sure = confirmed(found, [((1536,), 0)])
    assert server_of((1280,), sure) == 0
    assert server_of((3072,), sure) is None
    # Another server that was right and faster there says nothing of this one.
    assert server_of((1280,), confirmed(found, [((1536,), 1)])) is None
