"""What is concluded from numbers: importance of parameters, occupancy, shares of the roofline."""

import random
from collections.abc import Callable, Mapping
from itertools import product

import pytest
from pydantic import ValidationError

from testbed.rows import rejected
from tests.unit.cli.test_report import result
from tests.unit.tuning.test_decide import timed_baseline
from warpsmith.domain.templates.outcome import (
    CompileFacts,
    Measured,
    Outcome,
    Stage,
    TimeSummary,
    WorkloadTiming,
)
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.measure.occupancy import occupancy
from warpsmith.report.bundle import report_html
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.analysis.floors import floors
from warpsmith.tuning.analysis.parameter_importance import effects
from warpsmith.tuning.analysis.search_facts import facts_of

GRID = [{"A": a, "B": b, "C": c} for a, b, c in product((1, 2, 4, 8), (1, 2, 4), (0, 1))]


def measured(objective: float, us: float = 10.0, facts: CompileFacts = CompileFacts()) -> Measured:
    summary = TimeSummary(median_us=us, low_us=us, high_us=us, samples=5, launches_per_sample=1)
    timings = tuple(WorkloadTiming(workload=k, cold=summary) for k in ("n=4096", "n=1001"))
    return Measured(timings=timings, facts=facts, objective=objective)


def trials(objective: Callable[[Mapping[str, int]], float]) -> list[tuple[Configuration, Outcome]]:
    return [(dict(c), measured(objective(c))) for c in GRID]


def test_a_parameter_that_alone_decides_has_all_the_importance() -> None:
    single, pairs = effects(trials(lambda c: 1.0 / c["A"]))
    assert [(e.parameter, e.importance) for e in single] == [("A", 1.0), ("B", 0.0), ("C", 0.0)]
    assert single[0].best == {"1": 1.0, "2": 0.5, "4": 0.25, "8": 0.125}
    assert pairs == ()


def test_values_stand_in_the_order_of_numbers() -> None:
    single, _ = effects(trials(lambda c: 1.0 / c["A"])[::-1])
    assert [list(e.best) for e in single if e.parameter == "A"] == [["1", "2", "4", "8"]]


def test_two_that_only_matter_together_are_an_interaction() -> None:
    single, pairs = effects(trials(lambda c: 0.5 if (c["A"] > 2) == (c["C"] == 1) else 1.0))
    assert all(e.importance < 0.05 for e in single)
    assert pairs[0].parameters == ("A", "C")
    assert pairs[0].importance > 0.9


def test_noise_explains_little() -> None:
    rng = random.Random(3)
    means = []
    for _ in range(50):
        single, _ = effects(trials(lambda c: rng.lognormvariate(0, 0.1)))
        means += [e.importance for e in single]
    assert sum(means) / len(means) < 0.06


def test_too_few_trials_say_nothing() -> None:
    assert effects(trials(lambda c: 1.0)[:7]) == ((), ())


def test_values_that_fail_are_counted() -> None:
    found = trials(lambda c: 1.0 + c["A"])
    failed = [(c, rejected("x", Stage.COMPILE) if c["B"] == 4 else o) for c, o in found]
    single, _ = effects(failed)
    (b,) = [e for e in single if e.parameter == "B"]
    assert b.rejected == {"4": "8 of 8"}
    assert set(b.best) == {"1", "2"}


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "share"),
    [
        ("sm_90", 256, 32, 0, 1.0),
        ("sm_90", 256, 64, 0, 0.5),
        ("sm_90", 1024, 65, 0, 0.0),
        ("sm_90", 32, 32, 0, 0.5),
        ("sm_90", 128, 32, 48 << 10, 4 * 4 / 64),
        ("sm_86", 1024, 32, 0, 32 / 48),
        ("sm_90a", 96, 32, 0, 63 / 64),
        ("gfx942", 1024, 128, 0, 16 / 32),
        ("gfx942", 1024, 129, 0, 0.0),
        ("gfx942", 256, 112, 0, 16 / 32),
        ("gfx942", 256, 64, 0, 1.0),
        ("gfx942", 32, 8, 0, 1.0),
        ("gfx942", 64, 8, 0, 1.0),
        ("gfx942", 65, 8, 0, 1.0),
        ("gfx90a", 256, 8, 33 << 10, 4 / 32),
        ("gfx90a", 256, 8, 16385, 12 / 32),
        ("gfx1100", 64, 32, 0, None),
        ("OpenCL C 1.2", 64, 32, 0, None),
        ("sm_61", 64, 32, 0, None),
    ],
)
def test_occupancy_is_what_the_tables_say(
    architecture: str, threads: int, registers: int, shared: int, share: float | None
) -> None:
    assert occupancy(architecture, threads, registers, shared) == share


def test_facts_say_how_near_the_roofline_a_kernel_is() -> None:
    job = scale_job()
    baseline = timed_baseline(100.0).model_copy(
        update={
            "device": DEVICE.model_copy(update={"architecture": "sm_90"}),
            "facts": CompileFacts(registers=64, spill_bytes=8),
        }
    )
    template = Template(kernel=job.kernel, space=job.space)
    seen: list[tuple[Configuration, Outcome]] = [
        ({"BLOCK": b, "PER": 1}, measured(b / 1000, us=b, facts=CompileFacts(registers=32)))
        for b in (64, 128)
    ]
    facts = facts_of(job, baseline, template, seen)
    assert (facts.peak_bytes_per_s, facts.launch_us, facts.trials, facts.measured) == (1e9, 1.0, 2, 2)
    (large, _) = facts.baseline.workloads
    assert (large.bytes, large.floor_bound) == (8 * 4096, "bytes")
    assert large.floor_us == pytest.approx(32.768)
    assert large.roofline_share == pytest.approx(0.32768)
    assert large.bytes_per_s == pytest.approx(8 * 4096 / 100e-6)
    assert (facts.baseline.spill_bytes, large.threads_per_block, large.occupancy) == (8, 64, 0.5)
    assert facts.best is not None
    assert facts.best.configuration == {"BLOCK": 64, "PER": 1}
    assert (facts.best.objective, facts.best.registers) == (0.064, 32)
    assert facts.best.workloads[0].blocks == 64
    assert facts.best.workloads[0].roofline_share == pytest.approx(32.768 / 64)


def test_the_bytes_of_a_job_are_those_that_it_says() -> None:
    job = scale_job(bytes="4 * n")
    (large, _) = facts_of(job, timed_baseline(100.0)).baseline.workloads
    assert (large.bytes, large.floor_bound) == (4 * 4096, "bytes")
    assert large.floor_us == pytest.approx(16.384)
    floor = floors(job, timed_baseline(100.0))[job.workloads[0].key]
    assert floor.us == pytest.approx(16.384)


@pytest.mark.parametrize(
    ("expression", "words"),
    [("n - n", "bytes: 'n - n' is 0, below 1"), ("4 * m", "bytes: .*unknown name 'm'"), ("n / 3", "whole")],
)
def test_bytes_that_are_no_number_of_bytes_are_refused(expression: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        scale_job(bytes=expression)


@pytest.mark.parametrize(("us", "share"), [(32.769, 32.768 / 32.769), (32.767, None), (23.0, None)])
def test_a_floor_that_a_launch_was_faster_than_is_unknown(us: float, share: float | None) -> None:
    """On a busy processor the ceilings came out low, and a naive kernel had 1.43 of its roofline."""
    (large, _) = facts_of(scale_job(), timed_baseline(us)).baseline.workloads
    assert large.roofline_share == (None if share is None else pytest.approx(share))
    assert (large.floor_us is None) is (share is None)
    assert large.floor_bound == ("" if share is None else "bytes")


def test_without_ceilings_and_trials_little_is_said() -> None:
    baseline = timed_baseline(100.0).model_copy(update={"ceilings": None})
    facts = facts_of(scale_job(), baseline)
    assert facts.best is None and facts.peak_bytes_per_s is None
    assert facts.baseline.workloads[0].roofline_share is None
    assert facts.baseline.workloads[0].occupancy is None


def test_the_report_says_what_bounds_the_kernel_and_which_parameters_matter() -> None:
    job = scale_job()
    template = Template(kernel=job.kernel, space=job.space)
    seen: list[tuple[Configuration, Outcome]] = [
        ({"BLOCK": b, "PER": p}, measured(64 / b, us=6400 / b)) for b in (32, 64, 128, 256) for p in (1, 2, 4)
    ]
    page = report_html(result(facts=facts_of(job, timed_baseline(100.0), template, seen)))
    assert "What bounds it" in page
    assert "<td>n=4096</td>" in page and "33 %" in page and "131 %" not in page
    assert "<code>BLOCK</code>" in page and "100 %" in page
    assert "256: 4.00×" in page
    assert "What bounds it" not in report_html(result())
