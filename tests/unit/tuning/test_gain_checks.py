"""What of a gain may be published, by new inputs and by the worker's own clock."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import TimingPlan, TimingSamples
from warpsmith.domain.templates.outcome import Interval
from warpsmith.tuning.timing.paired_blocks import TimeBlock, TimedBlocks, TimedSide
from warpsmith.tuning.winners.gain_checks import (
    CLOCKED_PAIRS,
    FRESH_LAUNCHES,
    Doubt,
    FreshBlocks,
    doubt_of,
    fresh_plan,
    lost_seconds,
)
from warpsmith.verify.run_report import Timed

TWICE = Interval(estimate=2.0, low=1.9, high=2.1)


def fresh(*speedups: float) -> FreshBlocks:
    """Block pairs with these speed-ups."""
    samples: dict[str, list[Sequence[float]]] = {"A": [], "B": []}
    for speedup in speedups:
        samples["A"].append([10.0])
        samples["B"].append([10.0 / speedup])
    return FreshBlocks([TimedBlocks(samples, ())])


def test_a_gain_that_new_inputs_show_stays_as_it_is() -> None:
    assert fresh(2.0, 1.95, 2.05, 1.98).shown(TWICE) is TWICE
    assert fresh(3.0, 3.1, 3.2).shown(TWICE) is TWICE, "more is not claimed"


def test_a_gain_that_is_lower_on_new_inputs_is_published_as_they_show_it() -> None:
    shown = fresh(1.5, 1.51, 1.49, 1.5).shown(TWICE)
    assert isinstance(shown, Interval)
    assert shown.estimate == pytest.approx(1.5)
    assert shown.high < TWICE.low


def test_a_gain_of_which_noisy_blocks_show_much_less_is_published_as_they_show_it() -> None:
    shown = fresh(1.1, 1.2, 2.0, 1.3, 2.1, 1.2).shown(TWICE)
    assert isinstance(shown, Interval)
    assert shown.high >= TWICE.low
    assert shown.estimate == pytest.approx(1.25)
    little = Interval(estimate=1.1, low=1.08, high=1.12)
    assert fresh(1.0, 1.1, 1.09, 0.98).shown(little) is little


@pytest.mark.parametrize("on_new", [0.9, 1.0, 1.2])
def test_a_gain_that_new_inputs_do_not_show_is_refused(on_new: float) -> None:
    shown = fresh(on_new, on_new, on_new).shown(TWICE)
    assert isinstance(shown, str)
    assert "2.00x on inputs that come again" in shown
    assert f"{on_new:.2f}x" in shown


def test_too_few_pairs_contradict_nothing() -> None:
    assert fresh(1.0, 1.0).shown(TWICE) is TWICE


def test_long_launches_have_fewer_of_them_in_a_sample() -> None:
    assert fresh_plan(CacheState.COLD, 3.0).launches == FRESH_LAUNCHES
    assert fresh_plan(CacheState.COLD, 50_000.0).launches == 1
    assert fresh_plan(CacheState.HOT, 3.0).fresh


def reading(reported_s: float, wall_s: float) -> Timed:
    return Timed(TimingSamples((reported_s * 1e6 / 4,) * 4, 1), None, wall_s)


def readings(reported: float, real: float, noise_s: float) -> list[tuple[Timed, Timed]]:
    """The user's kernel takes 20 ms; the winner's process reports `reported` and takes `real` of that."""
    rng = np.random.default_rng(5)
    out = []
    for _ in range(CLOCKED_PAIRS):
        host = 0.003 + np.abs(rng.normal(0, noise_s, 2))
        out.append((reading(0.02, 0.02 + host[0]), reading(0.02 * reported, 0.02 * real + host[1])))
    return out


def test_what_the_worker_waits_less_is_not_lost() -> None:
    saved_s, _, most_s = lost_seconds(readings(0.5, 0.5, noise_s=0.0005))
    assert saved_s == pytest.approx(0.01)
    assert most_s < saved_s / 2


def test_times_that_nobody_waits_less_for_are_lost() -> None:
    saved_s, least_s, _ = lost_seconds(readings(0.5, 1.0, noise_s=0.0005))
    assert least_s > saved_s / 2


def test_a_busy_host_tells_nothing() -> None:
    saved_s, least_s, most_s = lost_seconds(readings(0.95, 0.95, noise_s=0.02))
    assert least_s < saved_s / 2 < most_s


def by_rounds(*rests: tuple[float, float], spread_s: float = 0.0002) -> list[list[tuple[Timed, Timed]]]:
    """A round for each pair of rests, s, of the user's kernel and of a winner that reports to save 4 ms."""
    return [
        [
            (reading(0.01, 0.01 + own + spread_s * i), reading(0.006, 0.006 + winner + spread_s * i))
            for i in range(CLOCKED_PAIRS)
        ]
        for own, winner in rests
    ]


LOST, SEEN, UNTOLD = (0.003, 0.007), (0.003, 0.003), (0.003, 0.0053)


@pytest.mark.parametrize(
    ("rounds", "doubted"),
    [
        ((LOST, LOST, LOST), True),
        ((UNTOLD, LOST, LOST), False),
        ((LOST, SEEN, LOST), False),
        ((SEEN,), False),
        ((LOST, UNTOLD, UNTOLD), False),
    ],
)
def test_one_disturbed_round_withdraws_nobody(rounds: tuple[tuple[float, float], ...], doubted: bool) -> None:
    doubt = doubt_of(by_rounds(*rounds))
    assert (doubt is not None) == doubted
    if doubt is not None:
        assert not doubt.busy
        assert "save 4 ms" in doubt.words


def test_no_round_is_asked_for_after_one_that_shows_the_saving() -> None:
    def rounds() -> Iterator[list[tuple[Timed, Timed]]]:
        yield from by_rounds(SEEN)
        raise AssertionError("asked for another one")

    assert doubt_of(rounds()) is None


def test_a_doubt_on_a_busy_host_is_no_accusation() -> None:
    # The user's own kernel is disturbed for milliseconds in most of its readings.
    quiet, busy = (0.003, 0.009), (0.006, 0.012)
    doubt = doubt_of(by_rounds(quiet, busy, busy))
    assert doubt is not None
    assert doubt.busy


def test_a_host_is_busy_where_the_users_kernel_alone_shows_it() -> None:
    steady, torn = fresh(1.0, 1.0), FreshBlocks([TimedBlocks({"A": [[10.0], [16.0]], "B": [[9.0]] * 2}, ())])
    assert not steady.is_disturbed
    assert torn.is_disturbed


class Blocks:
    """A side whose blocks take these times, µs, in turn."""

    def __init__(self, *times_us: float) -> None:
        self.session = SimpleNamespace(job=SimpleNamespace(objective=SimpleNamespace(cache=CacheState.COLD)))
        self.left = list(times_us)

    def unchecked_block(self, plan: TimingPlan) -> TimeBlock:
        return lambda _: [self.left.pop(0)]


@pytest.mark.parametrize(
    ("own", "winner", "found"),
    [
        ((10.0, 10.0, 10.0), (5.0, 5.0, 5.0), Interval),
        ((10.0, 10.0, 10.0), (10.0, 10.0, 10.0), False),
        ((10.0, 16.0, 10.0), (10.0, 16.0, 10.0), True),
    ],
)
def test_a_doubt_is_put_to_new_blocks(
    own: tuple[float, ...], winner: tuple[float, ...], found: type | bool
) -> None:
    blocks, first = fresh(1.0, 1.0, 1.0), TimedBlocks({"A": [[10.0]], "B": [[5.0]]}, ())
    sides = cast("tuple[TimedSide, TimedSide]", (Blocks(*own), Blocks(*winner)))
    said = blocks.confirmed(TWICE, *sides, first, nullcontext())
    if isinstance(found, bool):
        assert isinstance(said, Doubt)
        assert said.busy is found
        assert "2.00x on inputs that come again" in said.words
    else:
        assert isinstance(said, Interval)
        assert said.estimate < TWICE.low, "all blocks count"
