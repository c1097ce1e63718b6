"""A winner that shows no gain costs little: one pair of processes, and no check that only a winner needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from testbed.fakes import FakeReference, fake_ports
from testbed.sanitizer import NothingWaits
from tests.unit.tuning.test_tuning_loops import JOB, finalists
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.templates.outcome import MIN_CLAIM, Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import DEVICE, noises
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.tasks import VerifyResult
from warpsmith.tuning.winners.process_pairs import (
    HOST_PROCESSES,
    LOOK_PAIRS,
    MIN_PAIRS,
    PROCESSES,
)
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners

PAIRS = 4 * PROCESSES
FIRST_OPENED = 3
"""Processes that are open while the first pair of them times blocks."""


@dataclass
class Sanitizer(NothingWaits):
    """Counts what it is asked."""

    asked: list[bytes] = field(default_factory=list)

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        self.asked.append(compiled.binary)
        return {}


def verified(
    gain: float,
    noise: float = 0.001,
    least_gain: float | None = MIN_CLAIM,
    later_gain: float | None = None,
    shares_host: bool = False,
) -> tuple[VerifyResult, Sequence[bytes]]:
    """Winners that are all faster than the user's kernel by this much; in later pairs of processes by
    another."""
    found, _ = finalists()

    def model(configuration: Configuration, workload: str) -> float:
        own = configuration == JOB.space.defaults
        seen = gain if later_gain is None or len(opener.opened) <= FIRST_OPENED else later_gain
        return 10.0 if own else 10.0 / seen

    ports, opener = fake_ports(model)
    opener.info = DEVICE.model_copy(update={"shares_host": shares_host})
    sanitizer = Sanitizer()
    ports = SessionPorts(opener, ports.compiler, FakeReference(), sanitizer=sanitizer)
    plan = ComparisonPlan(PAIRS, noises(noise), least_gain)
    return verify_winners(JOB, ports, found, plan, lambda: True), sanitizer.asked


@pytest.mark.parametrize("gain", [1.0, 0.8, 1.005])
def test_what_shows_no_gain_is_compared_in_one_pair_of_processes(gain: float) -> None:
    result, sanitized = verified(gain)
    assert {c.pairs for c in result.comparisons} == {LOOK_PAIRS}
    assert all(c.verdict is not Verdict.FASTER for c in result.comparisons)
    assert all(c.other_best_us is None for c in result.comparisons)
    assert sanitized == []
    assert LOOK_PAIRS >= MIN_PAIRS


def test_a_gain_is_compared_in_all_and_looked_at_in_every_way() -> None:
    result, sanitized = verified(1.04)
    assert {c.pairs for c in result.comparisons} == {PAIRS}
    assert {c.verdict for c in result.comparisons} == {Verdict.FASTER}
    assert all(c.other_best_us is not None for c in result.comparisons)
    assert sanitized


def test_a_gain_far_beyond_the_noise_needs_one_pair_of_processes_less() -> None:
    result, sanitized = verified(1.2)
    assert {c.pairs for c in result.comparisons} == {PAIRS - PAIRS // PROCESSES}
    assert {c.verdict for c in result.comparisons} == {Verdict.FASTER}
    assert all(c.other_best_us is not None for c in result.comparisons)
    assert sanitized


def test_a_host_stops_early_at_a_gain_on_which_two_pairs_of_processes_agree() -> None:
    result, sanitized = verified(1.2, shares_host=True)
    assert {c.pairs for c in result.comparisons} == {HOST_PROCESSES * LOOK_PAIRS}
    assert {c.verdict for c in result.comparisons} == {Verdict.FASTER}
    assert sanitized
    disputed, _ = verified(1.2, later_gain=1.01, shares_host=True)
    assert {c.pairs for c in disputed.comparisons} == {LOOK_PAIRS + PAIRS // HOST_PROCESSES}


def test_where_all_pairs_are_asked_for_none_is_left_out() -> None:
    result, _ = verified(1.2, least_gain=None)
    assert {c.pairs for c in result.comparisons} == {PAIRS}


def test_a_gain_within_the_noise_is_none() -> None:
    result, _ = verified(1.05, noise=0.1)
    assert {c.pairs for c in result.comparisons} == {LOOK_PAIRS}
    assert {c.verdict for c in result.comparisons} == {Verdict.EQUAL}
    assert {c.candidate for c in result.choices} == {None}


def test_a_plan_may_ask_for_every_check_of_what_would_not_serve() -> None:
    result, sanitized = verified(0.9, least_gain=None)
    assert {c.pairs for c in result.comparisons} == {PAIRS}
    assert all(c.verdict is not Verdict.FASTER for c in result.comparisons)
    assert sanitized
