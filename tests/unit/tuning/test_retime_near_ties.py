"""Near-ties are measured again, so that the luckiest sample does not win by that alone."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from testbed.fakes import fake_ports
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.timing.paired_blocks import block_plan
from warpsmith.tuning.winners import winner_election
from warpsmith.tuning.winners.retime_near_ties import MOST_NEAR_TIES, TIMINGS, near_ties, retime_near_ties
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

NOISE = 0.03


def counted(times: list[float | None]) -> tuple[Callable[[int], float | None], list[int]]:
    """Exact times by position, and who was asked."""
    asked: list[int] = []

    def measure(index: int) -> float | None:
        asked.append(index)
        return times[index]

    return measure, asked


def test_the_lucky_one_falls_behind() -> None:
    measure, asked = counted([1.05, 1.01, 1.0, 9.0])
    assert retime_near_ties([0.97, 0.98, 1.0, 1.2], NOISE, measure, TIMINGS)[:3] == [2, 1, 0]
    assert 3 not in asked


def test_without_near_ties_nothing_is_measured() -> None:
    measure, asked = counted([1.0, 1.0])
    assert retime_near_ties([1.0, 1.2], NOISE, measure, TIMINGS) == [0, 1]
    assert retime_near_ties([1.0], NOISE, measure, TIMINGS) == [0]
    assert retime_near_ties([], NOISE, measure, TIMINGS) == []
    assert asked == []


def test_who_fails_is_last_and_who_is_behind_is_not_measured_on() -> None:
    measure, asked = counted([None, 1.5, 1.0, 1.0])
    order = retime_near_ties([1.0, 1.0, 1.01, 1.01, 2.0], NOISE, measure, TIMINGS)
    assert set(order[:2]) == {2, 3}
    assert order[2:] == [1, 4, 0]
    assert (asked.count(0), asked.count(1)) == (1, 1)
    assert len(asked) <= TIMINGS


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 7, 100])
def test_no_more_is_measured_than_allowed(budget: int) -> None:
    times = [1.0 + 0.001 * i for i in range(20)]
    measure, asked = counted(list(times))
    order = retime_near_ties(times, NOISE, measure, budget)
    assert sorted(order) == list(range(20))
    assert len(asked) <= budget
    assert set(asked) <= set(range(MOST_NEAR_TIES))


def test_near_ties_are_those_within_the_noise() -> None:
    assert near_ties([1.0, 1.02, 1.5], NOISE) == 2
    assert near_ties([1.0, 1.02, 1.5], 0.001) == 1
    assert near_ties([1.0] * 50, NOISE) == MOST_NEAR_TIES


def test_it_lowers_the_regret_under_noise() -> None:
    rng = np.random.default_rng(0)
    plain, played = [], []
    for _ in range(300):
        true = np.sort(1 + 0.1 * rng.random(40))
        seen = true * np.exp(rng.normal(0, NOISE, true.size))
        order = np.argsort(seen)
        drawn = rng.normal(0, NOISE, 100).tolist()
        measure = lambda i, o=order, t=true, d=drawn: t[o[i]] * math.exp(d.pop())  # noqa: E731
        chosen = retime_near_ties(list(seen[order]), NOISE, measure, TIMINGS)[0]
        plain.append(true[order[0]] / true[0] - 1)
        played.append(true[order[chosen]] / true[0] - 1)
    assert np.mean(played) < 0.75 * np.mean(plain)


def times(configuration: Configuration, workload: str) -> float:
    """The larger the block the faster; the baseline has 64."""
    return 4000.0 / int(configuration["BLOCK"]) + (workload == "n=1001")


@pytest.mark.parametrize(("noise", "block"), [(0.04, 256), (0.0001, 128)])
def test_the_winner_is_who_wins_the_play_off(noise: float, block: int) -> None:
    """The search saw 128 a little ahead of 256, which is twice as fast."""
    job = scale_job()
    ports, opener = fake_ports(times)
    baseline = measure_baseline(DeviceSession(job, ports))
    finalists = []
    for size, us in ((128, 20.0), (256, 20.5), (32, 60.0)):
        timings = []
        for timing in baseline.timings:
            assert timing.cold is not None
            timings.append(
                timing.model_copy(update={"cold": timing.cold.model_copy(update={"median_us": us})})
            )
        outcome = Measured(timings=tuple(timings), objective=us / 64)
        configuration: Configuration = {"BLOCK": size, "PER": 1}
        finalists.append(
            Finalist("c0", DeviceSession(job, ports).inputs.user_template, configuration, outcome)
        )
    result = verify_winners(job, ports, finalists, ComparisonPlan(4, noises(noise)), lambda: True, baseline)
    assert {c.configuration["BLOCK"] for c in result.choices if c.configuration} == {block}
    assert all(device.dead for device in opener.opened)
    for choice, comparison in zip(result.choices, result.comparisons, strict=True):
        assert choice.speedups[choice.workload] == comparison.speedup.low
        assert {*choice.speedups, *choice.searched} == {"n=4096", "n=1001"}


def test_a_near_tie_is_timed_as_briefly_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise that decides is that of blocks, and a timing that leaves doubt comes again."""
    job = scale_job()
    plans: list[object] = []

    def timed(session: DeviceSession, workload: Workload, *built: object) -> float:
        plans.append(built[-1])
        return 1.0

    monkeypatch.setattr(winner_election, "timed_once", timed)
    ports, _ = fake_ports(times)
    baseline = measure_baseline(DeviceSession(job, ports))
    template = DeviceSession(job, ports).inputs.user_template
    outcome = Measured(timings=baseline.timings, objective=0.5)
    near = [Finalist("c0", template, {"BLOCK": size, "PER": 1}, outcome) for size in (128, 256)]
    verify_winners(job, ports, near, ComparisonPlan(4, noises(0.04), None), lambda: True, baseline)
    assert set(plans) == {block_plan(job.objective.cache)}
