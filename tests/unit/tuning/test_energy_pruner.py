"""A search by energy: what is metered, what is only timed, and what comes of it."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from db.tables import CandidateRow, TrialRow
from testbed.fakes import ListSink
from tests.metering import Meter, cuda_job, hot_ports
from tests.unit.tuning.test_tuning_loops import Listed
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.measure import energy as measuring
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.decisions.stopping import at_the_floor
from warpsmith.tuning.objective import cost, costs, objective_of
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.timing.drift import corrected
from warpsmith.tuning.timing.energy import SILENT
from warpsmith.tuning.trials.energy_pruner import LEAST_ENERGY_GAIN, EnergyPruner
from warpsmith.tuning.trials.first_trial import run_gate
from warpsmith.tuning.trials.pruner import ENOUGH
from warpsmith.tuning.trials.slice import NO_ENERGY, SliceLimits, SliceStart, run_slice
from warpsmith.tuning.winners.finalists import Finalist, few, ranked
from worker.works.trial_reuse import still_count
from worker.works.verify import FINALISTS, _finalists

KEY = "n=4096"
BEFORE = {KEY: (100.0, 40.0)}
ENERGY = cuda_job(metric="energy")


def heard(times_us: Sequence[float], **changes: Any) -> EnergyPruner:
    """Energies are 150 W for the time, and 10 mJ for the work."""
    energy_pruner = EnergyPruner({KEY: 1.0}, BEFORE, draw=lambda: 1.0, **changes)
    for us in times_us:
        energy_pruner.learn({KEY: (us, 0.15 * us + 10.0)})
    return energy_pruner


def test_nothing_is_said_before_enough_was_metered() -> None:
    times = [50.0 + 5 * i for i in range(ENOUGH)]
    assert heard(times[:-1]).estimate_if_hopeless({KEY: 400.0}) is None
    assert heard(times).estimate_if_hopeless({KEY: 400.0}) is not None


def test_what_is_slow_is_not_metered_and_its_estimate_follows_its_time() -> None:
    energy_pruner = heard([50.0, 60.0, 70.0, 90.0, 120.0, 160.0, 200.0])
    found = energy_pruner.estimate_if_hopeless({KEY: 180.0})
    assert found is not None
    assert not found.goes_on
    assert found.objective == pytest.approx((0.15 * 180.0 + 10.0) / 40.0, rel=0.03)


@pytest.mark.parametrize("us", [30.0, 50.0, 51.0])
def test_what_may_be_best_is_metered(us: float) -> None:
    assert heard([50.0, 60.0, 70.0, 90.0, 120.0, 160.0, 200.0]).estimate_if_hopeless({KEY: us}) is None


def test_energies_that_do_not_follow_times_leave_room() -> None:
    energy_pruner = EnergyPruner({KEY: 1.0}, BEFORE, draw=lambda: 1.0)
    rng = random.Random(0)
    for _ in range(20):
        us = rng.uniform(80, 120)
        energy_pruner.learn({KEY: (us, 40.0 * math.exp(rng.gauss(0, 0.4)))})
    assert energy_pruner.estimate_if_hopeless({KEY: 120.0}) is None


def test_one_workload_that_may_be_best_is_enough() -> None:
    before = {"a": (100.0, 40.0), "b": (100.0, 40.0)}
    energy_pruner = EnergyPruner({"a": 1.0, "b": 1.0}, before, draw=lambda: 1.0)
    for i in range(8):
        us = 50.0 + 10 * i
        energy_pruner.learn({"a": (us, 0.4 * us), "b": (us, 0.4 * us)})
    assert energy_pruner.estimate_if_hopeless({"a": 120.0, "b": 120.0}) is not None
    assert energy_pruner.estimate_if_hopeless({"a": 120.0, "b": 45.0}) is None


def test_an_estimate_is_never_better_than_the_best() -> None:
    energy_pruner = heard([50.0] * ENOUGH)
    for us in (51.0, 55.0, 60.0, 100.0):
        found = energy_pruner.estimate_if_hopeless({KEY: us})
        assert found is None or found.objective >= (0.15 * 50.0 + 10.0) / 40.0


def test_some_go_on_by_chance_and_all_do_where_nothing_is_to_be_left_out() -> None:
    times = [50.0, 60.0, 70.0, 90.0, 120.0, 160.0]
    energy_pruner = heard(times)
    energy_pruner.draw = lambda: 0.0
    found = energy_pruner.estimate_if_hopeless({KEY: 200.0})
    assert found is not None
    assert found.goes_on
    assert heard(times, cuts=False).estimate_if_hopeless({KEY: 200.0}) is None
    assert LEAST_ENERGY_GAIN > 0


# A slice over a device that draws power.

TIMES_US = {32: 50.0, 64: 100.0, 128: 60.0, 256: 400.0}
POWER_W = {32: 500.0, 64: 400.0, 128: 300.0, 256: 200.0}
LIMITS = SliceLimits(seconds=60, trials=100, compile_ahead=2)


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SETTLE_S", 0.01)
    monkeypatch.setattr(measuring, "LEAST_S", 0.01)


def searched(
    job: Job,
    meter: Meter,
    *blocks: tuple[int, int],
    fault: Any = lambda c: "",
    silent: int | None = None,
    earlier: Sequence[Measured] = (),
) -> tuple[dict[tuple[int, int], Outcome], Listed]:
    """The gate's default (64 threads), then these blocks, in order."""
    ports = hot_ports(meter, TIMES_US, POWER_W)
    baseline = measure_baseline(DeviceSession(job, ports))
    assert baseline.refused == ""
    sink = ListSink()
    searcher = Listed([{"BLOCK": b, "PER": p} for b, p in blocks])
    session = DeviceSession(job, hot_ports(meter, TIMES_US, POWER_W, fault))
    if silent is not None:
        meter.silent_after = meter.runs + silent
    run_slice(
        session, session.inputs.user_template, baseline, searcher, sink, LIMITS, SliceStart(earlier=earlier)
    )
    return {(int(c["BLOCK"]), int(c["PER"])): o for c, o in sink.trials}, searcher


def test_the_objective_is_energy_over_the_baseline_s() -> None:
    found, searcher = searched(ENERGY, Meter(), (32, 1), (128, 1))
    assert isinstance(found[128, 1], Measured)
    (timing,) = found[128, 1].timings
    assert timing.energy_mj == pytest.approx(300.0 * 60.0 / 1000, rel=0.1)
    assert found[128, 1].objective == pytest.approx(18.0 / 40.0, rel=0.15)
    # By time it would be the other way round.
    told = {key: value or math.inf for key, value in searcher.told.items()}
    least = configuration_key({"BLOCK": 128, "PER": 1})
    assert min(told, key=lambda key: told[key]) == least


def test_a_hopeless_trial_is_timed_and_not_metered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsmith.tuning.trials.energy_pruner.BY_CHANCE", 0.0)
    meter = Meter()
    good = [(b, p) for b in (32, 128) for p in (1, 2, 4, 8)]
    slow = [(256, p) for p in (1, 2, 4, 8)]
    found, searcher = searched(ENERGY, meter, *good, (64, 2), *slow)
    metered = [o for o in found.values() if isinstance(o, Measured)]
    left = {k: o for k, o in found.items() if isinstance(o, CutShort)}
    assert len(metered) >= ENOUGH
    # The first is far from all that was seen, so that one may be metered.
    assert len(left.keys() & set(slow)) >= 2
    for outcome in left.values():
        assert outcome.skipped == (KEY,)
        assert outcome.timings[0].energy_mj is None
        assert outcome.estimate >= min(o.objective for o in metered)
    assert meter.runs == 1 + len(metered)
    assert searcher.told[configuration_key({"BLOCK": 256, "PER": 8})] == left[256, 8].estimate


@pytest.mark.parametrize("knows", [True, False])
def test_a_later_slice_hears_what_earlier_ones_metered(monkeypatch: pytest.MonkeyPatch, knows: bool) -> None:
    monkeypatch.setattr("warpsmith.tuning.trials.energy_pruner.BY_CHANCE", 0.0)
    first, _ = searched(ENERGY, Meter(), *((b, p) for b in (32, 128, 256) for p in (1, 2)))
    earlier = [o for o in first.values() if isinstance(o, Measured)]
    assert len(earlier) >= ENOUGH
    meter = Meter()
    slow = [(256, 4), (256, 8)]
    found, _ = searched(ENERGY, meter, *slow, earlier=earlier if knows else ())
    assert all(isinstance(found[key], CutShort) == knows for key in slow)
    # One run is the baseline's; without what is known the default configuration is metered as well.
    assert meter.runs == (1 if knows else 2 + len(slow))


def test_where_nothing_may_be_left_out_all_are_metered() -> None:
    job = ENERGY.model_copy(update={"budget": ENERGY.budget.model_copy(update={"stop_early": False})})
    blocks = [(b, p) for b in (32, 128) for p in (1, 2, 4, 8)]
    found, _ = searched(job, Meter(), *blocks, (256, 1))
    assert all(isinstance(o, Measured) for o in found.values())


def test_a_wrong_kernel_is_not_metered() -> None:
    meter = Meter()
    found, _ = searched(ENERGY, meter, (32, 1), fault=lambda c: "wrong" if c["BLOCK"] == 32 else "")
    assert isinstance(found[32, 1], Rejected)
    assert meter.runs == 2  # the baseline, and the default in the gate


def test_a_counter_that_stands_still_is_no_energy() -> None:
    found, _ = searched(ENERGY, Meter(), (32, 1), silent=1)
    outcome = found[32, 1]
    assert isinstance(outcome, Rejected)
    assert (outcome.stage, outcome.reason) == (Stage.TIMING, SILENT)
    job = ENERGY
    refused = measure_baseline(
        DeviceSession(job, hot_ports(Meter(silent_after=0), TIMES_US, POWER_W))
    ).refused
    assert SILENT in refused


def test_a_device_without_a_counter_measures_no_energy() -> None:
    baseline = measure_baseline(DeviceSession(ENERGY, hot_ports(Meter(), TIMES_US, POWER_W)))
    session, sink = DeviceSession(ENERGY, hot_ports(None, TIMES_US, POWER_W)), ListSink()
    result = run_slice(session, session.inputs.user_template, baseline, Listed([]), sink, LIMITS)
    assert SILENT in result.reason
    assert not any(isinstance(outcome, Measured) for _, outcome in sink.trials)


def test_a_kernel_that_is_wrong_in_the_run_for_its_energy_is_rejected() -> None:
    ports = hot_ports(Meter(), TIMES_US, POWER_W)
    baseline = measure_baseline(DeviceSession(ENERGY, ports))
    runs = {"seen": 0}

    def fault(configuration: Configuration) -> str:
        # The checked launch, then the timed one, then the run for the energy.
        runs["seen"] += 1
        return "timed" if runs["seen"] > 3 else ""

    session = DeviceSession(ENERGY, hot_ports(Meter(), TIMES_US, POWER_W, fault))
    (timing,) = baseline.timings
    assert timing.cold is not None
    assert timing.energy_mj is not None
    energy_pruner = EnergyPruner({KEY: 1.0}, {KEY: (timing.cold.median_us, timing.energy_mj)})
    kernel = session.inputs.user_template.configured({"BLOCK": 64, "PER": 1})
    outcome = run_gate(
        session, session.inputs.user_template, kernel, session.compile(kernel), {KEY: 100.0}, energy_pruner
    )
    assert isinstance(outcome, Rejected)
    assert "in a launch that was timed" in outcome.reason


def test_a_baseline_of_before_says_what_to_do() -> None:
    ports = hot_ports(Meter(), TIMES_US, POWER_W)
    baseline = measure_baseline(DeviceSession(ENERGY, ports))
    (timing,) = baseline.timings
    older = baseline.model_copy(update={"timings": (timing.model_copy(update={"energy_mj": None}),)})
    session = DeviceSession(ENERGY, ports)
    result = run_slice(session, session.inputs.user_template, older, Listed([]), ListSink(), LIMITS)
    assert result.reason == NO_ENERGY
    assert "submit the job again" in NO_ENERGY


# What the rest of a job makes of it.


def outcomes() -> dict[int, Measured]:
    ports = hot_ports(Meter(), TIMES_US, POWER_W)
    (timing,) = measure_baseline(DeviceSession(cuda_job(), ports)).timings
    assert timing.cold is not None
    made = {}
    for block, us in TIMES_US.items():
        cold = timing.cold.model_copy(update={"median_us": us})
        values = {"cold": cold, "energy_mj": us * POWER_W[block] / 1000}
        made[block] = Measured(timings=(timing.model_copy(update=values),), objective=0.5)
    return made


def test_finalists_stand_by_energy_and_what_is_slower_than_the_baseline_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(POWER_W, 256, 10.0)
    ports = hot_ports(Meter(), TIMES_US, POWER_W)
    baseline = measure_baseline(DeviceSession(ENERGY, ports))
    template = DeviceSession(ENERGY, ports).inputs.user_template
    finalists = [Finalist("c0", template, {"BLOCK": b, "PER": 1}, o) for b, o in outcomes().items()]
    (workload,) = ENERGY.workloads
    order = [f.configuration["BLOCK"] for f in ranked(ENERGY, workload, finalists, baseline)]
    assert order == [128, 32, 64, 256]
    by_time = [f.configuration["BLOCK"] for f in ranked(cuda_job(), workload, finalists, baseline)]
    assert by_time == [32, 128, 64, 256]
    one = ENERGY.model_copy(update={"objective": ENERGY.objective.model_copy(update={"configurations": 1})})
    (only,) = few(one, [f for f in finalists if f.configuration["BLOCK"] != 256], baseline)
    assert only.configuration["BLOCK"] == 128


def test_costs_are_what_the_objective_is_about() -> None:
    outcome = outcomes()[128]
    (timing,) = outcome.timings
    assert cost(ENERGY, timing) == 18.0
    assert cost(cuda_job(), timing) == 60.0
    assert costs(ENERGY, outcome.timings) == {KEY: 18.0}
    assert costs(ENERGY, (timing.model_copy(update={"energy_mj": None}),)) == {}
    assert objective_of(ENERGY, outcome.timings, {KEY: 36.0}) == pytest.approx(0.5)


def test_a_device_that_is_held_back_spoils_times_and_not_energies() -> None:
    outcome = outcomes()[128]
    by_time = corrected(cuda_job(), outcome, {KEY: 1.5})
    by_energy = corrected(ENERGY, outcome, {KEY: 1.5})
    assert isinstance(by_time, Measured)
    assert isinstance(by_energy, Measured)
    assert by_time.drift == pytest.approx(1.5)
    assert by_time.objective == pytest.approx(0.5 / 1.5)
    assert by_energy.drift == pytest.approx(1.5)
    assert by_energy.objective == 0.5


def test_the_floor_of_times_ends_no_search_by_energy() -> None:
    baseline = measure_baseline(DeviceSession(ENERGY, hot_ports(Meter(), TIMES_US, POWER_W)))
    assert at_the_floor(ENERGY, baseline, 1e-6) == ""


def test_a_worker_keeps_the_finalists_with_the_least_energy_not_the_fastest() -> None:
    (timing,) = outcomes()[128].timings
    assert timing.cold is not None
    rows = []
    for i in range(3 * FINALISTS):
        # The faster, the more energy.
        cold = timing.cold.model_copy(update={"median_us": 100.0 - i})
        values = {"cold": cold, "energy_mj": 10.0 + i}
        outcome = Measured(timings=(timing.model_copy(update=values),), objective=1.0 + i)
        rows.append(TrialRow(id=i, candidate_id="c", configuration={"BLOCK": 64, "PER": i}, outcome=outcome))
    template = Template(kernel=ENERGY.kernel, space=ENERGY.space)
    candidates = [CandidateRow(id="c", template=template)]
    kept = {f.configuration["PER"] for f in _finalists(ENERGY, candidates, rows, set())}
    assert kept == set(range(FINALISTS))
    kept = {f.configuration["PER"] for f in _finalists(cuda_job(), candidates, rows, set())}
    assert kept == set(range(2 * FINALISTS, 3 * FINALISTS))


def test_trials_of_other_jobs_count_with_their_energy_or_not_at_all() -> None:
    space = ENERGY.space
    baseline = measure_baseline(DeviceSession(ENERGY, hot_ports(Meter(), TIMES_US, POWER_W)))
    outcome = outcomes()[128]
    silent = outcome.timings[0].model_copy(update={"energy_mj": None})
    rows = [
        TrialRow(configuration=tried, key=configuration_key(tried), outcome=found)
        for tried, found in (
            ({"BLOCK": 128, "PER": 1}, outcome),
            ({"BLOCK": 128, "PER": 2}, outcome.model_copy(update={"timings": (silent,)})),
        )
    ]
    (known,) = still_count(ENERGY, space, baseline, rows)
    assert known.configuration == {"BLOCK": 128, "PER": 1}
    assert isinstance(known.outcome, Measured)
    assert known.outcome.objective == pytest.approx(18.0 / 40.0, rel=0.1)
    assert len(list(still_count(cuda_job(), space, baseline, rows))) == 2
