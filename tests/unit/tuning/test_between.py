"""Secret shapes between workloads: where they are drawn, and what a server has to do on them."""

import math

import pytest

from testbed.fakes import TimeModel, fake_ports
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import VerifyResult
from warpsmith.tuning.winners.between import SHAPES, _lot
from warpsmith.tuning.winners.shape_boxes import Box
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

SIZES = (1024, 4096, 16384)
LISTED = {f"n={n}" for n in SIZES}
WINNER: Configuration = {"BLOCK": 256, "PER": 1}


def quick(configuration: Configuration, workload: str) -> float:
    """Half the time everywhere."""
    return 20.0 if configuration == WINNER else 40.0


def slow_between(configuration: Configuration, workload: str) -> float:
    """Half the time on the workloads, twice the time on any other shape."""
    if configuration != WINNER:
        return 40.0
    return 20.0 if workload in LISTED else 80.0


def job_of(constraint: str) -> Job:
    return scale_job(
        workloads=[{"dimensions": {"n": n}} for n in SIZES], constraints=[{"expression": constraint}]
    )


def verified(model: TimeModel, constraint: str = "BLOCK <= n") -> VerifyResult:
    job = job_of(constraint)
    ports, opener = fake_ports(model)
    baseline = measure_baseline(DeviceSession(job, ports))
    timings = []
    for timing in baseline.timings:
        assert timing.cold is not None
        cold = timing.cold.model_copy(update={"median_us": 20.0})
        timings.append(timing.model_copy(update={"cold": cold, "max_error": 0.0}))
    template = DeviceSession(job, ports).inputs.user_template
    finalist = Finalist("c0", template, WINNER, Measured(timings=tuple(timings), objective=0.5))
    plan = ComparisonPlan(4, baseline.aa_widths)
    result = verify_winners(job, ports, [finalist], plan, lambda: True, baseline)
    assert all(device.dead for device in opener.opened)
    assert {c.configuration == WINNER for c in result.choices} == {True}
    return result


def test_every_box_gets_two_shapes_of_its_own() -> None:
    drawn = [c.dimensions["n"] for c in verified(quick).between]
    assert len(set(drawn)) == 2 * SHAPES
    assert sum(1024 < n < 4096 for n in drawn) == sum(4096 < n < 16384 for n in drawn) == SHAPES
    assert all(n % 16 == 0 for n in drawn)


def test_they_differ_from_verification_to_verification() -> None:
    assert len({tuple(c.dimensions["n"] for c in verified(quick).between) for _ in range(3)}) == 3


def test_who_is_slower_there_passes_nothing_and_keeps_its_workloads() -> None:
    assert verified(slow_between).between == ()


def test_shapes_that_the_constraints_forbid_are_not_drawn() -> None:
    allowed = "n <= 4096 or n == 16384 or BLOCK < 256"
    assert {c.dimensions["n"] < 4096 for c in verified(quick, allowed).between} == {True}


@pytest.mark.parametrize(("low", "high", "multiple"), [(16, 64, 16), (1001, 4000, 1), (17, 17, 17)])
def test_a_lot_is_in_its_box_and_as_divisible(low: int, high: int, multiple: int) -> None:
    box = Box((low,), (high,), (multiple,), 0)
    drawn = [_lot(box)[0] for _ in range(200)]
    assert all(box.holds((n,)) and box.divides((n,)) for n in drawn)
    assert len(set(drawn)) >= min(4, math.ceil((high - low + 1) / multiple))
