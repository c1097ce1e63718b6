"""What is kept of a job's seconds for its verification."""

import pytest

from warpsmith.domain.device import Backend
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.decisions.time_budget import (
    CHECKS_SHARE,
    DEVICE_EACH_S,
    ENERGIES_S,
    ENERGY_EACH_S,
    HOST_EACH_S,
    verification_s,
)
from warpsmith.tuning.tasks import BaselineResult

WORKLOADS = [{"dimensions": {"n": 1024 * i}} for i in range(1, 6)]


def kept(budget_s: float, baseline_s: float, **device: object) -> float:
    job = scale_job(workloads=WORKLOADS, budget={"seconds": budget_s})
    info = DEVICE.model_copy(update=device)
    return verification_s(job, BaselineResult(device=info, seconds=baseline_s))


@pytest.mark.parametrize(
    ("budget_s", "baseline_s", "device", "want_s"),
    [
        (1000, 10, {}, 150),
        (100, 10, {"shares_host": False}, 10 * CHECKS_SHARE + 5 * DEVICE_EACH_S),
        (100, 10, {"shares_host": True}, 15),
        (60, 10, {"shares_host": True}, 10 + 5 * HOST_EACH_S),
        (100, 50, {"shares_host": False}, 15),
        (100, 40, {"shares_host": False}, 20),
        (100, 70, {"shares_host": False}, 15),
        (10, 1, {"backend": Backend.REPLAY}, 1.5),
    ],
)
def test_verification_gets_what_it_is_expected_to_take_within_bounds(
    budget_s: float, baseline_s: float, device: dict[str, object], want_s: float
) -> None:
    assert kept(budget_s, baseline_s, **device) == pytest.approx(want_s)


@pytest.mark.parametrize(
    ("objective", "each_s"),
    [
        ({}, DEVICE_EACH_S),
        ({"energy": True}, DEVICE_EACH_S + ENERGIES_S),
        ({"metric": "energy"}, ENERGY_EACH_S),
    ],
)
def test_a_job_that_asks_for_energy_keeps_more(objective: dict[str, object], each_s: float) -> None:
    kernel = scale_job().kernel.model_dump(mode="json") | {"backend": "cuda"}
    job = scale_job(workloads=WORKLOADS, kernel=kernel, objective=objective, budget={"seconds": 150})
    info = DEVICE.model_copy(update={"shares_host": False, "backend": Backend.CUDA})
    found = verification_s(job, BaselineResult(device=info, seconds=10))
    rest_s = 0.6 * 150 - 10
    assert found == pytest.approx(min(10 * CHECKS_SHARE + 5 * each_s, rest_s))


def test_before_the_baseline_a_share_is_kept() -> None:
    assert verification_s(scale_job(budget={"seconds": 100}), None) == pytest.approx(15)


@pytest.mark.parametrize(
    ("best", "workloads"), [(None, 5), (0.9, 5), (0.98, 5), (0.995, 1), (1.0, 1), (1.4, 1)]
)
def test_while_no_gain_is_shown_the_time_of_one_workload_is_kept(best: float | None, workloads: int) -> None:
    job = scale_job(workloads=WORKLOADS, budget={"seconds": 200})
    info = DEVICE.model_copy(update={"shares_host": False})
    found = verification_s(job, BaselineResult(device=info, seconds=40), best)
    whole = max(0.15 * 200, 40 * CHECKS_SHARE + 5 * DEVICE_EACH_S)
    assert found == pytest.approx(whole * workloads / 5)


def test_a_search_for_energy_keeps_the_time_of_all_workloads_since_all_are_compared() -> None:
    kernel = scale_job().kernel.model_dump(mode="json") | {"backend": "cuda"}
    asked = {"objective": {"metric": "energy"}, "budget": {"seconds": 600}}
    job = scale_job(workloads=WORKLOADS, kernel=kernel, **asked)
    info = DEVICE.model_copy(update={"shares_host": False, "backend": Backend.CUDA})
    known = BaselineResult(device=info, seconds=40)
    assert verification_s(job, known, 1.0) == verification_s(job, known)
