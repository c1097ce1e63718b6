"""Timed blocks under throttling, and what sanitizers say of winners."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from testbed.fakes import FakeReference, fake_ports
from testbed.sanitizer import NothingWaits
from tests.unit.tuning.test_tuning_loops import finalists, times
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.templates.outcome import Comparison, Conditions, Rejected, Stage, Verdict
from warpsmith.errors import Unavailable
from warpsmith.sandbox.hosts.sanitize_host import first_finding
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.tasks import Withdrawal
from warpsmith.tuning.timing.paired_blocks import REDONE, TimedBlocks, interleaved, joined
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners

JOB = scale_job()
WELL = {"core_mhz": 1980, "memory_mhz": 3201, "temperature_c": 40, "power_w": 200.0, "power_limit_w": 700.0}


@dataclass
class Readings:
    """A device that is throttled at the readings of these numbers."""

    throttled: set[int] = field(default_factory=set)
    taken: int = 0

    def read(self, side: Literal["A", "B"]) -> Conditions | None:
        self.taken += 1
        why = ("power cap",) if self.taken - 1 in self.throttled else ()
        return Conditions(side=side, throttled=why, **WELL)


def blocks(readings: Readings | None) -> TimedBlocks | Rejected:
    turns = iter(range(100))
    base, winner = (lambda redrawn: (100.0 + next(turns),)), (lambda redrawn: (float(redrawn),))
    return interleaved("ABBA", base, winner, readings)


def test_a_block_that_was_throttled_is_timed_again_and_only_the_last_counts() -> None:
    found = blocks(Readings({0, 1}))
    assert not isinstance(found, Rejected)
    assert found.samples["A"] == [(102.0,), (103.0,)]
    assert [c.side for c in found.conditions] == ["A", "B", "B", "A"]
    assert not any(c.throttled for c in found.conditions)


def test_a_block_that_stays_throttled_is_kept_and_told() -> None:
    readings = Readings(set(range(1 + REDONE)))
    found = blocks(readings)
    assert not isinstance(found, Rejected)
    assert found.conditions[0].throttled == ("power cap",)
    assert readings.taken == 4 + REDONE


def throttled_pairs(own: Sequence[float], held: Collection[int]) -> list[float]:
    """Estimates of pairs whose winner takes 100 µs, some of them throttled."""
    sides = [(side, n) for n in range(len(own)) for side in ("A", "B")]
    conditions = tuple(
        Conditions(side=side, throttled=("power cap",) * (n in held and side == "A"), **WELL)
        for side, n in sides
    )
    samples: dict[str, list[Sequence[float]]] = {"A": [(us,) for us in own], "B": [(100.0,)] * len(own)}
    return [round(i.estimate, 2) for i in TimedBlocks(samples, conditions).intervals()]


def test_a_claim_has_to_hold_without_the_throttled_pairs() -> None:
    gain = [180.0] * 12
    assert throttled_pairs(gain, ()) == [1.8]
    assert throttled_pairs(gain, {4, 5, 9}) == [1.8, 1.8]
    assert throttled_pairs([180.0] * 6 + [100.0] * 6, range(6)) == [1.4, 1.0], "throttled alone they gain"
    assert throttled_pairs(gain, range(7)) == [], "most are throttled"
    assert throttled_pairs(gain[:4], {0, 1}) == [], "too few are left"


def test_the_interval_holds_what_each_process_shows() -> None:
    blocks: dict[str, list[Sequence[float]]] = {"A": [(us,) for us in (130.0,) * 5 + (101.0,) * 3]}
    blocks["B"] = [(100.0,)] * 8
    alone = TimedBlocks({side: found[:5] for side, found in blocks.items()}, ())
    other = TimedBlocks({side: found[5:] for side, found in blocks.items()}, ())
    assert (alone.speedup.low, other.speedup.high) == (1.3, 1.01)
    both = joined([alone, other]).speedup
    assert (both.estimate, both.low, both.high) == (1.3, 1.01, 1.3)
    assert joined([joined([alone]), other]).processes == (5, 3)


def test_every_second_block_of_the_winner_has_inputs_of_its_own() -> None:
    found = blocks(None)
    assert not isinstance(found, Rejected)
    assert sorted(map(tuple, found.samples["B"])) == [(0.0,), (1.0,)]
    assert found.conditions == ()


def test_a_refused_block_ends_it() -> None:
    refusal = Rejected(stage=Stage.CORRECTNESS, reason="is wrong")
    assert interleaved("AB", lambda redrawn: (1.0,), lambda redrawn: refusal, None) is refusal


def test_no_claim_is_made_on_a_device_that_is_held_down() -> None:
    found, noise = finalists()
    ports, opener = fake_ports(times)
    ports = SessionPorts(opener, ports.compiler, FakeReference(), conditions=Readings(set(range(10_000))))
    result = verify_winners(JOB, ports, found, ComparisonPlan(4, noises(noise)), lambda: True)
    assert {c.verdict for c in result.comparisons} == {Verdict.NOISY}
    assert all(c.candidate is None for c in result.choices)
    assert all(len(c.blocks) == 8 for c in result.comparisons)


@dataclass
class FakeSanitizer(NothingWaits):
    """Finds in binaries what it is told."""

    found: Mapping[bytes, str]
    broken: bool = False
    silent: Collection[bytes] = ()
    """Binaries of which the second tool says nothing."""
    asked: list[bytes] = field(default_factory=list)

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        self.asked.append(compiled.binary)
        if self.broken:
            raise Unavailable("memcheck: no summary")
        if compiled.binary in self.silent:
            return {"memcheck": ""}
        return {"memcheck": "", "racecheck": self.found.get(compiled.binary, "")}


def sanitized(sanitizer: FakeSanitizer) -> tuple[Sequence[Withdrawal], dict[str, Comparison]]:
    found, noise = finalists()
    ports, opener = fake_ports(times)
    ports = SessionPorts(opener, ports.compiler, FakeReference(), sanitizer=sanitizer)
    result = verify_winners(JOB, ports, found, ComparisonPlan(4, noises(noise)), lambda: True)
    return result.withdrawn, {c.workload: c for c in result.comparisons}


def test_winners_are_sanitized_once_each_and_say_so() -> None:
    sanitizer = FakeSanitizer({})
    withdrawn, comparisons = sanitized(sanitizer)
    assert withdrawn == ()
    assert len(sanitizer.asked) == len(set(sanitizer.asked)) == 2
    assert all(c.sanitizers == {"memcheck": "", "racecheck": ""} for c in comparisons.values())


def best_binary() -> bytes:
    sanitizer = FakeSanitizer({})
    sanitized(sanitizer)
    return sanitizer.asked[0]


def test_a_winner_with_a_race_makes_room_for_the_next_one() -> None:
    binary = best_binary()
    sanitizer = FakeSanitizer({binary: "Race reported between Write and Read"})
    withdrawn, comparisons = sanitized(sanitizer)
    assert len(withdrawn) == 1
    assert "sanitizer: racecheck: Race reported" in str(withdrawn[0])
    assert all(c.sanitizers["racecheck"] == "" for c in comparisons.values())
    assert all(c.configuration_key.encode() != binary for c in comparisons.values())


def test_what_the_users_kernel_has_as_well_rejects_nothing() -> None:
    default = {"BLOCK": 64, "PER": 1}
    from warpsmith.domain.templates.space import configuration_key

    both = {best_binary(): "Race", configuration_key(default).encode(): "Race"}
    withdrawn, comparisons = sanitized(FakeSanitizer(both))
    assert withdrawn == ()
    assert "as in your kernel: Race" in {c.sanitizers["racecheck"] for c in comparisons.values()}


def test_a_tool_that_cannot_run_the_users_kernel_rejects_nothing() -> None:
    from warpsmith.domain.templates.space import configuration_key

    default = configuration_key({"BLOCK": 64, "PER": 1}).encode()
    withdrawn, comparisons = sanitized(FakeSanitizer({best_binary(): "Race"}, silent=[default]))
    assert withdrawn == ()
    assert "not told of your kernel: Race" in {c.sanitizers.get("racecheck") for c in comparisons.values()}


def test_a_sanitizer_that_does_not_run_is_told_and_rejects_nothing() -> None:
    withdrawn, comparisons = sanitized(FakeSanitizer({}, broken=True))
    assert withdrawn == ()
    assert all(c.sanitizers == {"not run": "memcheck: no summary"} for c in comparisons.values())


def test_a_warning_is_noted_if_disturbed_launches_are_right() -> None:
    sanitizer = FakeSanitizer({best_binary(): "Warning: Potential invalid __shared__ write"})
    withdrawn, comparisons = sanitized(sanitizer)
    assert withdrawn == ()
    words = "Warning: Potential invalid __shared__ write; 32 launches in 2 processes at once were right"
    assert words in {c.sanitizers["racecheck"] for c in comparisons.values()}


CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
OUT_OF_BOUNDS = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at f+0xb0
=========     by thread (63,0,0) in block (15,0,0)
=========     Access to 0x7f2 is out of bounds
========= ERROR SUMMARY: 2 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at f+0x90 and Read access at f+0xd0 [252 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""

CLUSTER = """========= COMPUTE-SANITIZER
========= Potential invalid __shared__ write of size 4 bytes
=========     at k(float *)+0x240
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x1000400 is located in a block that might have already exited
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8d0d] in c
=========
========= RACECHECK SUMMARY: 3 hazards displayed (64 errors, 0 warnings)
"""
"""Of a right kernel on an H200: two blocks write to each other; each waits at an mbarrier for the other."""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (CLEAN, ""),
        (OUT_OF_BOUNDS, "Invalid __global__ read of size 4 bytes"),
        (RACE, "Error: Race reported between Write"),
        (RACE.replace("1 hazard displayed (1 error", "0 hazards displayed (0 errors"), ""),
        (
            RACE.replace("Error: Race", "Warning: Race").replace("1 error, 0 w", "0 errors, 1 w"),
            "Warning: Race",
        ),
        (CLUSTER, "Warning: Potential invalid __shared__ write of size 4 bytes"),
        (RACE.replace("=========\n", "========= Warning: first\n========= Info: it\n", 1), "Error: Race"),
    ],
)
def test_the_first_finding_of_a_log(log: str, words: str) -> None:
    found = first_finding(log)
    assert found.startswith(words) and bool(found) == bool(words)


def test_a_log_without_a_summary_says_nothing() -> None:
    with pytest.raises(Unavailable, match="no summary"):
        first_finding("========= COMPUTE-SANITIZER\n========= Error: no device\n")
