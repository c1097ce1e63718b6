"""Few configurations for all workloads: optimal where that can be checked, near it where it cannot."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from testbed.fakes import fake_ports
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.winners import cover_workloads
from warpsmith.tuning.winners.cover_workloads import choose_few
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

Floats = NDArray[np.float64]


def cost(times: Floats, baseline: Floats, weights: Floats, rows: Sequence[int]) -> float:
    served = np.minimum(times[list(rows)].min(axis=0), baseline)
    return float((weights * np.log(served / baseline)).sum())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most_sets", [cover_workloads.MOST_SETS, 0])
def test_no_other_few_serve_the_workloads_better(
    seed: int, most_sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cover_workloads, "MOST_SETS", most_sets)
    rng = np.random.default_rng(seed)
    times = rng.lognormal(0, 0.7, (9, 6))
    times[rng.random(times.shape) < 0.2] = np.inf
    baseline, weights = rng.lognormal(0.3, 0.2, 6), rng.uniform(0.5, 3, 6)
    for count in (1, 2, 3):
        chosen = choose_few(times, baseline, weights, count)
        best = min(cost(times, baseline, weights, s) for s in itertools.combinations(range(9), count))
        assert len(chosen) <= count
        reached = cost(times, baseline, weights, chosen)
        if most_sets:
            assert reached == pytest.approx(best)
        else:
            assert reached <= 0.9 * best


def test_one_that_is_good_everywhere_beats_the_best_of_each() -> None:
    times = np.array([[1.0, 9.0, 9.0], [9.0, 1.0, 9.0], [2.0, 2.0, 2.0]])
    baseline, weights = np.full(3, 10.0), np.ones(3)
    assert choose_few(times, baseline, weights, 1) == [2]
    assert choose_few(times, baseline, weights, 3) == [0, 1, 2]


def test_what_is_never_faster_than_the_baseline_is_not_chosen() -> None:
    times = np.array([[5.0, 5.0], [1.0, 5.0]])
    assert choose_few(times, np.array([4.0, 4.0]), np.ones(2), 2) == [1]
    assert choose_few(times[:1], np.array([4.0, 4.0]), np.ones(2), 2) == []
    assert choose_few(times[:0], np.array([4.0, 4.0]), np.ones(2), 2) == []


def times_us(configuration: Configuration, workload: str) -> float:
    """32 is best for the one, 256 for the other, 128 fair for both; the default, 64, is the baseline."""
    us = {32: (40.0, 5.0), 64: (40.0, 40.0), 128: (10.0, 10.0), 256: (5.0, 40.0)}
    return us[int(configuration["BLOCK"])][workload != "n=4096"] + int(configuration["PER"]) - 1


@pytest.mark.parametrize(("limit", "blocks"), [(1, {128}), (2, {32, 256}), (None, {32, 256})])
def test_the_winners_are_no_more_than_the_job_allows(limit: int | None, blocks: set[int]) -> None:
    job = scale_job(objective={"configurations": limit})
    ports, _ = fake_ports(times_us)
    measuring = DeviceSession(job, ports)
    baseline = measure_baseline(measuring)
    template = measuring.inputs.user_template
    timed = {t.workload: t for t in baseline.timings}
    finalists = []
    for block in (32, 128, 256):
        configuration: Configuration = {"BLOCK": block, "PER": 1}
        timings = []
        for workload, timing in timed.items():
            us = times_us(configuration, workload)
            assert timing.cold is not None
            cold = timing.cold.model_copy(update={"median_us": us})
            timings.append(timing.model_copy(update={"cold": cold}))
        outcome = Measured(timings=tuple(timings), objective=0.5)
        finalists.append(Finalist("c0", template, configuration, outcome))
    result = verify_winners(job, ports, finalists, ComparisonPlan(4, noises(0.001)), lambda: True, baseline)
    assert {c.configuration["BLOCK"] for c in result.choices if c.configuration} == blocks
    assert all(c.configuration for c in result.choices)
