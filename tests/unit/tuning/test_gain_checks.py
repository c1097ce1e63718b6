"""What of a gain may be published, by new inputs and by the worker's own clock."""

from collections.abc import Sequence

import numpy as np
import pytest

from warpsmith.domain.job import CacheState
from warpsmith.domain.outcome import Interval
from warpsmith.domain.plan import TimingSamples
from warpsmith.tuning.timing.paired_blocks import TimedBlocks
from warpsmith.tuning.winners.gain_checks import (
    CLOCKED_PAIRS,
    FRESH_LAUNCHES,
    FreshBlocks,
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
    saved_s, least_s, most_s = lost_seconds(readings(0.95, 0.95, noise_s=0.01))
    assert least_s < saved_s / 2 < most_s
