"""Hopeless configurations end early, and nothing that ended early ever counts as measured."""

import itertools
import math
import random
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.fakes import ListSink, TimeModel, fake_ports
from testbed.repetitions import examples
from tests.unit.tuning.test_tuning_loops import LIMITS, Listed, all_configurations
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.analysis.search_facts import best_of
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.trials import pruner as module
from warpsmith.tuning.trials.pruner import BY_CHANCE, ENOUGH, Pruner, evenly
from warpsmith.tuning.trials.slice import run_slice

BASELINE = {"a": 10.0, "b": 20.0, "c": 40.0}


def after(rows: list[dict[str, float]], cuts: bool = True, draw: Callable[[], float] = lambda: 1.0) -> Pruner:
    """A pruner that has heard of these; nothing goes on by chance."""
    made = Pruner(dict.fromkeys(BASELINE, 1.0), BASELINE, cuts, draw)
    for row in rows:
        made.learn(row)
    return made


def alike(count: int = 12, noise: float = 0.01) -> list[dict[str, float]]:
    """All workloads slow down together."""
    rng = np.random.default_rng(1)
    scales = 1.0 + rng.random(count)
    return [{k: us * s * math.exp(rng.normal(0, noise)) for k, us in BASELINE.items()} for s in scales]


def test_what_is_slow_on_workloads_that_say_all_of_the_others_ends() -> None:
    found = after(alike()).estimate_if_hopeless({"a": 18.0}, ["b", "c"])
    assert found is not None and not found.goes_on
    assert found.objective == pytest.approx(1.8, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "times_us", "rest"),
    [
        (alike(), {"a": 10.1}, ["b", "c"]),
        (alike(ENOUGH - 1), {"a": 18.0}, ["b", "c"]),
        (alike(noise=0.6), {"a": 18.0}, ["b", "c"]),
        (alike(), {"a": 18.0, "b": 36.0, "c": 72.0}, []),
        (alike(), {"a": 18.0}, ["b"]),
        ([{"a": 10.0 + i, "b": 20.0 + i} for i in range(12)], {"a": 30.0}, ["b", "c"]),
    ],
    ids=["near the best", "too few", "unlike", "the last workload", "two workloads", "never seen on one"],
)
def test_what_may_be_best_somewhere_goes_on(
    rows: list[dict[str, float]], times_us: Mapping[str, float], rest: list[str]
) -> None:
    assert after(rows).estimate_if_hopeless(times_us, rest) is None


def test_nothing_ends_on_a_device_that_drifts_or_in_a_job_that_does_not_want_it() -> None:
    drifting = after(alike())
    drifting.steady = False
    assert drifting.estimate_if_hopeless({"a": 18.0}, ["b", "c"]) is None
    assert after(alike(), cuts=False).estimate_if_hopeless({"a": 18.0}, ["b", "c"]) is None
    assert after(alike(), cuts=False).order(["c", "a", "b"]) == ["c", "a", "b"]


def test_some_go_on_by_chance_with_their_estimate() -> None:
    draws = random.Random(3).random
    judged = [after(alike(), draw=draws).estimate_if_hopeless({"a": 18.0}, ["b", "c"]) for _ in range(400)]
    assert 0.06 < sum(j is not None and j.goes_on for j in judged) / len(judged) < 0.14


def test_the_workload_that_says_most_comes_first_and_the_cheapest_until_that_is_known() -> None:
    assert after([]).order(["c", "b", "a"]) == ["a", "b", "c"]
    rng = np.random.default_rng(2)
    rows = [{"a": 10 * (s + t), "b": 20 * s, "c": 40 * (s - 0.4 * t)} for s, t in 1 + rng.random((20, 2))]
    assert after(rows).order(["c", "b", "a"]) == ["b", "a", "c"]


def mean_error(seed: int, pruner: Pruner) -> float:
    """Of the estimates of 400 configurations, in logarithms; below 0 they are better than the truth.

    The workloads' relation bends: what holds near the best misleads far from it.
    """
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(400):
        slow, noise = rng.gamma(1.5, 0.4), rng.normal(0, 0.1, 3)
        logs = slow * np.array([1.0, 1.3, 0.8]) + 0.2 * slow**2 + noise
        times_us = {k: BASELINE[k] * math.exp(v) for k, v in zip(BASELINE, logs, strict=True)}
        order = pruner.order(list(BASELINE))
        found = pruner.estimate_if_hopeless({order[0]: times_us[order[0]]}, order[1:])
        if found is None or found.goes_on:
            pruner.learn(times_us)
        else:
            errors.append(math.log(found.objective) - logs.mean())
    assert len(errors) > 200
    return float(np.mean(errors))


@pytest.mark.parametrize("seed", range(6))
def test_estimates_are_not_better_than_the_truth_on_the_whole(seed: int) -> None:
    assert mean_error(seed, after([], draw=random.Random(seed).random)) == pytest.approx(0.0, abs=0.025)


def test_without_those_that_go_on_by_chance_estimates_may_stay_wrong() -> None:
    assert mean_error(0, after([])) < -0.06


KEYS = ("n=4096", "n=1001", "n=2048")
WORK = {"n=4096": 4.0, "n=1001": 1.0, "n=2048": 2.0}


def three_workloads() -> Job:
    return scale_job(workloads=[{"dimensions": {"n": n}} for n in (4096, 1001, 2048)])


def searched(job: Job, model: TimeModel) -> tuple[ListSink, Listed]:
    ports, _ = fake_ports(model)
    session = DeviceSession(job, ports)
    baseline = measure_baseline(DeviceSession(job, fake_ports(model)[0]))
    sink, searcher = ListSink(), Listed(all_configurations())
    run_slice(session, session.inputs.user_template, baseline, searcher, sink, LIMITS)
    return sink, searcher


def together(configuration: Configuration, workload: str) -> float:
    """The default is the best by far, everywhere."""
    block, per = int(configuration["BLOCK"]), int(configuration["PER"])
    return (5.0 + abs(math.log2(block / 64)) * 4 + per) * WORK[workload]


def test_a_slice_cuts_trials_short_and_tells_the_searcher_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BY_CHANCE", 0.0)
    sink, searcher = searched(three_workloads(), together)
    cut = [(c, o) for c, o in sink.trials if isinstance(o, CutShort)]
    assert len(sink.trials) == 16
    assert len(cut) >= 5
    base = together({"BLOCK": 64, "PER": 1}, "n=1001")
    for configuration, outcome in cut:
        ran = {t.workload for t in outcome.timings}
        assert "n=1001" in ran, "the cheapest comes first"
        assert ran | set(outcome.skipped) == set(KEYS)
        assert not ran & set(outcome.skipped)
        assert outcome.estimate == pytest.approx(together(configuration, "n=1001") / base, rel=0.02)
        assert searcher.told[configuration_key(configuration)] == outcome.estimate
    # The first may need its second workload: what is known by then depends on the judge's pace.
    assert sum(o.skipped == ("n=2048", "n=4096") for _, o in cut) >= len(cut) - 1
    whole = [o for _, o in sink.trials if isinstance(o, Measured)]
    assert all([t.workload for t in o.timings] == list(KEYS) for o in whole), "in the job's order"


def test_what_goes_on_by_chance_is_measured_whole_and_keeps_what_was_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BY_CHANCE", 1.1)
    sink, _ = searched(three_workloads(), together)
    whole = [o for _, o in sink.trials if isinstance(o, Measured)]
    assert len(whole) == 16
    expected = [(o.expected, o.objective) for o in whole if o.expected is not None]
    assert len(expected) >= 5
    assert all(e == pytest.approx(o, rel=0.02) for e, o in expected)


def test_a_wrong_kernel_is_rejected_even_where_it_is_hopeless() -> None:
    ports, _ = fake_ports(together, lambda c: "wrong" if c["BLOCK"] == 256 else "")
    job = three_workloads()
    session, sink = DeviceSession(job, ports), ListSink()
    baseline = measure_baseline(DeviceSession(job, fake_ports(together)[0]))
    run_slice(session, session.inputs.user_template, baseline, Listed(all_configurations()), sink, LIMITS)
    assert {int(c["BLOCK"]) for c, o in sink.trials if isinstance(o, Rejected)} == {256}
    assert any(isinstance(o, CutShort) for _, o in sink.trials)


TIMES = st.lists(st.tuples(*[st.floats(1.0, 100.0)] * 3), min_size=16, max_size=16)
SLOWNESS = st.lists(st.floats(1.0, 50.0), min_size=16, max_size=16)


@examples(25)
@given(TIMES, SLOWNESS, st.floats(0.0, 1.0))
def test_what_was_cut_short_is_never_the_best(
    free: list[tuple[float, float, float]], slow: list[float], share: float
) -> None:
    """Whatever the times, from workloads that say nothing of each other to such that say all."""
    job = three_workloads()
    keys = [configuration_key(c) for c in (job.space.defaults, *all_configurations())]
    table = {
        key: {k: us**share * s * WORK[k] for k, us in zip(KEYS, own, strict=True)}
        for key, own, s in zip(keys, free, slow, strict=True)
    }
    sink, _ = searched(job, lambda c, workload: table[configuration_key(c)][workload])
    best, best_us = math.inf, dict.fromkeys(KEYS, math.inf)
    for _, outcome in sink.trials:
        assert not isinstance(outcome, Rejected)
        times_us = {t.workload: t.cold.median_us for t in outcome.timings if t.cold is not None}
        if isinstance(outcome, Measured):
            assert set(times_us) == set(KEYS)
            best = min(best, outcome.objective)
            best_us = {k: min(us, times_us[k]) for k, us in best_us.items()}
        else:
            assert {*times_us, *outcome.skipped} == set(KEYS)
            assert times_us and outcome.skipped
            assert outcome.estimate >= best * (1 - 1e-9)
            assert all(us > best_us[k] for k, us in times_us.items())
    found = best_of(sink.trials)
    assert found is not None and found[1].objective == best


@examples(10)
@given(SLOWNESS)
def test_one_workload_is_always_run(slow: list[float]) -> None:
    def outcomes(**changes: object) -> list[tuple[Configuration, Outcome]]:
        job = scale_job(workloads=[{"dimensions": {"n": 1001}}], **changes)
        keys = [configuration_key(c) for c in (job.space.defaults, *all_configurations())]
        table = dict(zip(keys, slow, strict=True))
        return [
            (c, o.model_copy(update={"timings": [t.cold for t in o.timings], "drift": 1.0}))
            for c, o in searched(job, lambda c, _: table[configuration_key(c)])[0].trials
            if isinstance(o, Measured)
        ]

    found = outcomes()
    assert len(found) == 16
    assert found == outcomes(budget={"trials": 12, "seconds": 60, "stop_early": False})


@pytest.mark.parametrize("seed", range(20))
def test_what_goes_on_by_chance_is_spread_evenly(seed: int) -> None:
    draw = evenly(seed)
    chosen = [i for i in range(200) if draw() < BY_CHANCE]
    gaps = [b - a for a, b in itertools.pairwise([-1, *chosen, 200])]
    assert len(chosen) == pytest.approx(20, abs=2)
    assert max(gaps) <= 14
    again = evenly(seed)
    assert [i for i in range(200) if again() < BY_CHANCE] == chosen
