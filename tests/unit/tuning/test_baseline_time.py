"""Long launches: fewer samples, fewer blocks and fewer cases, and nothing less for quick kernels."""

import pytest

from testbed.fakes import fake_ports
from warpsmith.domain.jobs.job import CacheState, Workload
from warpsmith.domain.jobs.plan import Family, TimingPlan, TimingSamples
from warpsmith.measure.protocol import search_plan
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks import baseline_time
from warpsmith.tuning.checks.baseline_time import LEAST_PAIRS, SHARE, BaselineTime
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.paired_blocks import block_plan

FAMILIES = [Case(scale_job().workloads[0], family) for family in Family if family is not Family.DECLARED]
NEAR = [Case(Workload(dimensions={"n": n})) for n in (2, 50, 99, 101)]


def _size(case: Case) -> float:
    return case.workload.dimensions["n"] / 100


@pytest.mark.parametrize(
    ("sample_s", "samples"),
    [(0.0, 9), (0.001, 9), (0.2, 9), (0.3, 6), (1.5, 3), (1.9, 3), (2.5, 1), (9.0, 1)],
)
def test_samples_are_fewer_where_they_are_long(sample_s: float, samples: int) -> None:
    assert search_plan(CacheState.COLD).samples_of(sample_s * 1e6) == samples


def test_blocks_are_shorter_than_other_timings_because_there_are_many() -> None:
    plan = block_plan(CacheState.COLD)
    assert [plan.samples_of(s * 1e6) for s in (0.001, 0.1, 0.2, 1.5)] == [4, 4, 2, 1]


def test_no_plan_gets_more_samples_than_it_asks_for() -> None:
    assert TimingPlan(CacheState.HOT, samples=1).samples_of(10.0) == 1


def _timed(launch_s: float, budget_s: float, parts: int = 1) -> tuple[BaselineTime, TimingSamples]:
    time_left = BaselineTime(budget_s, parts, own=False)
    plan = time_left.plan(search_plan(CacheState.COLD))
    count = plan.samples_of(launch_s * 1e6)
    samples = TimingSamples((launch_s * 1e6,) * count, 1)
    time_left.timed(samples)
    time_left.checked()
    return time_left, samples


def test_a_quick_kernel_is_spared_nothing_however_busy_the_machine() -> None:
    time_left, samples = _timed(0.0001, 4.0)
    time_left._began -= 1000.0
    time_left.check_s = 100.0
    assert len(samples.samples_us) == 9
    assert time_left.times_again(samples)
    assert time_left.pairs(10, block_plan(CacheState.COLD)) == 10
    assert time_left.families(FAMILIES) == FAMILIES
    assert time_left.neighbours(NEAR, _size) == NEAR
    assert time_left.left_out == []


def test_a_kernel_whose_launches_fit_is_spared_nothing_either() -> None:
    time_left, samples = _timed(0.024, 60.0)
    assert time_left.times_again(samples)
    assert time_left.pairs(10, block_plan(CacheState.COLD)) == 10
    assert time_left.families(FAMILIES) == FAMILIES
    assert time_left.left_out == []


def test_a_slow_one_is_left_the_least_and_says_so() -> None:
    time_left, samples = _timed(1.5, 120.0)
    assert len(samples.samples_us) == 3
    time_left._began -= time_left._launches_s
    assert not time_left.times_again(samples)
    pairs = time_left.pairs(10, block_plan(CacheState.COLD))
    assert LEAST_PAIRS <= pairs < 10
    time_left._began -= (2 * pairs + 1) * 1.5
    families = time_left.families(FAMILIES)
    assert 1 <= len(families) < len(FAMILIES)
    time_left._began -= len(families) * 3.0
    near = time_left.neighbours(NEAR, _size)
    assert near[0] == NEAR[0] and len(near) < len(NEAR)
    assert len(time_left.left_out) == 4
    assert time_left.spent_s <= SHARE * 120.0 * 1.1


def test_what_follows_and_what_is_around_launches_count() -> None:
    plan = block_plan(CacheState.COLD)
    plain, samples = _timed(0.2, 60.0)
    pairs = plain.pairs(10, plan)
    waited = BaselineTime(60.0, 1, own=False, reserved_s=5.0)
    waited.timed(samples)
    assert LEAST_PAIRS <= waited.pairs(10, plan) < pairs
    restored = BaselineTime(60.0, 1, own=False)
    restored.timed(samples, took_s=1.5 * 0.2 * (len(samples.samples_us) + 1))
    assert restored.overhead == pytest.approx(1.5)
    assert LEAST_PAIRS <= restored.pairs(10, plan) < pairs
    assert restored.least_s(plan) > plain.least_s(plan)


def test_a_quick_launch_has_no_overhead_however_busy_the_machine() -> None:
    time_left, samples = _timed(0.0001, 60.0)
    time_left.timed(samples, took_s=10.0)
    assert time_left.overhead == 1.0


def test_everything_counts_once_launches_are_long() -> None:
    time_left, _ = _timed(0.05, 60.0)
    time_left._began -= 20.0
    assert time_left.left_s < 0
    assert len(time_left.families(FAMILIES)) == 1


def test_a_slow_reference_counts_as_well() -> None:
    time_left, _ = _timed(0.0001, 60.0)
    time_left.reference_s = 5.0
    assert 1 <= len(time_left.families(FAMILIES)) < len(FAMILIES)


def _baseline(launch_s: float, seconds: float) -> BaselineResult:
    ports = fake_ports(lambda _configuration, _workload: launch_s * 1e6)[0]
    session = DeviceSession(scale_job(budget={"trials": 4, "seconds": seconds}), ports)
    try:
        return measure_baseline(session)
    finally:
        session.close()


def test_a_baseline_says_what_it_left_out_and_keeps_one_of_each() -> None:
    result = _baseline(1.5, 120.0)
    assert not result.refused
    assert "a launch takes 1.5 s" in result.notes[0]
    assert "other kinds of inputs were tried" in result.notes[0]
    assert {c.family for c in result.cases} > {Family.DECLARED}
    assert any(c.neighbour_of for c in result.cases)
    assert all(t.cold is not None for t in result.timings)
    assert all("left out" not in note and "tried" not in note for note in _baseline(0.0001, 120.0).notes)


def test_where_not_even_the_least_fits_the_job_is_told_what_to_ask_for() -> None:
    refused = _baseline(5.0, 30.0).refused
    assert refused.startswith("budget.seconds: a launch takes 5 s, and a baseline about ")
    asked = int(refused.split("raise it to ")[1].split(",")[0])
    assert asked > 4 * 30
    assert not _baseline(5.0, float(asked)).refused


def _of_workloads(*sizes: int) -> BaselineResult:
    ports = fake_ports(lambda _configuration, _workload: 100.0)[0]
    workloads = [{"dimensions": {"n": n}} for n in sizes]
    session = DeviceSession(scale_job(workloads=workloads), ports)
    try:
        return measure_baseline(session)
    finally:
        session.close()


def test_a_baseline_that_overran_the_whole_budget_ends_between_two_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not _of_workloads(64, 128, 256).refused
    assert len(_of_workloads(64).cases) > 2
    monkeypatch.setattr(baseline_time, "GRACE_S", -1e9)
    found = _of_workloads(64, 128, 256)
    assert found.refused.startswith("budget.seconds: the baseline of 1 of 3 workloads took longer")
    assert len(found.timings) == 1
    assert len(_of_workloads(64).cases) == 1, "its own case"
