"""Rules on sequences of launches: each launch for itself, and nothing that another launch runs."""

from dataclasses import replace
from typing import Any

import pytest

from tests.sequence_jobs import row_sums
from warpsmith.backends.base import CompileRequest, KernelEntry
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.by_value_plan import parameters_of
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.extensions.rules.templater import make_template

MERGE_SHARES = {
    "split < SPLITS; ++split": "split < SPLITS + 0 * BLOCK; ++split",
}
"""The macro of the first launch's block is named by the other launch, too."""


def request(kernel: ConfiguredKernel) -> CompileRequest:
    """How a compile child is asked."""
    entries = [
        KernelEntry(step.entry, parameters_of(kernel.kernel.of_step(n)))
        for n, step in enumerate(kernel.kernel.steps)
    ]
    first, *then = entries
    fields: dict[str, Any] = {"parameters": first.parameters, "then": tuple(then)}
    return CompileRequest(Backend.CUDA, kernel.source, first.entry, (), (), "nvrtc", "sm_90", 0, **fields)


@pytest.mark.parametrize("backend", [Backend.OPENCL, Backend.CUDA])
def test_every_launch_gets_parameters_of_its_own(backend: Backend) -> None:
    report = make_template(row_sums(backend))
    names = {p.name for p in report.template.space.parameters}
    assert {"SPLITS", "WS_BLOCK_0", "WS_BLOCK_1", "WS_UNROLL_0", "WS_ITEMS_1"} <= names
    first, second = report.template.kernel.launches
    assert [e.text for e in (*first.launch.grid, *first.launch.block)] == ["rows", "SPLITS", "WS_BLOCK_0"]
    assert second.launch.block[0].text == "WS_BLOCK_1"
    assert "WS_BLOCK_1" in second.launch.grid[0].text
    assert report.template.kernel.launch == first.launch
    assert all(a.detail.startswith(("launch 0: ", "launch 1: ")) for a in report.template.applied)
    assert any(str(d).startswith("fast_math: launch 1 (merge): no float") for d in report.declined)
    used = set().union(*(c.expression.names for c in report.template.space.constraints))
    assert {n for n in used if n.startswith("WS_")} <= names


def test_a_rule_declines_what_another_launch_runs() -> None:
    report = make_template(row_sums(replaced=MERGE_SHARES))
    words = "it would change what merge, another launch of the sequence, runs"
    assert f"lift_constants: launch 0 (partials): {words}" in map(str, report.declined)
    assert "#define BLOCK 64" in report.template.kernel.text


def test_a_function_that_both_launches_call_stays() -> None:
    shared = {
        "__kernel void partials": "float half_of(float v) { return v / 2.0f; }\n__kernel void partials",
        "sums[0];": "half_of(sums[0]);",
        "y[row] = sum;": "y[row] = half_of(sum);",
    }
    loose = {"y": {"rtol": 1e-2, "atol": 1e-2}}
    report = make_template(row_sums(replaced=shared, tolerances=loose))
    assert "return v / 2.0f;" in report.template.kernel.text
    assert any("fast_math: launch 0 (partials): it would change" in str(d) for d in report.declined)


def test_fast_functions_wait_for_the_tolerance_of_the_last_launch() -> None:
    divides = {
        "partial[row * SPLITS + split] = sums[0];": "partial[row * SPLITS + split] = sums[0] / columns;"
    }
    strict = make_template(row_sums(replaced=divides, tolerances={"y": {"rtol": 1e-6, "atol": 0}}))
    assert any(str(d).startswith("fast_math: launch 0 (partials): y is compared") for d in strict.declined)
    loose = make_template(row_sums(replaced=divides, tolerances={"y": {"rtol": 1e-2, "atol": 0}}))
    assert "WS_FAST_MATH_0" in {p.name for p in loose.template.space.parameters}


def test_rules_may_be_switched_off() -> None:
    job = row_sums()
    off: Job = job.model_copy(update={"rewrite": job.rewrite.model_copy(update={"enabled": False})})
    template = make_template(off).template
    assert template.kernel == job.kernel
    assert template.space == job.space


@pytest.mark.parametrize("values", [{}, {"SPLITS": 16, "WS_BLOCK_0": 128, "WS_ITEMS_1": 4, "WS_UNROLL_1": 2}])
def test_templates_of_sequences_compile_for_cuda(values: dict[str, int]) -> None:
    template = make_template(row_sums(Backend.CUDA)).template
    made = compile_cuda(request(template.configured(template.space.defaults | values)))
    assert isinstance(made, Compiled), made.reason
    assert made.entries == ("partials", "merge")
    assert made.facts.registers


def test_a_launch_whose_arguments_are_not_its_functions_does_not_compile_for_cuda() -> None:
    asked = request(ConfiguredKernel(kernel=row_sums(Backend.CUDA).kernel, defines={"SPLITS": "2"}))
    fewer = replace(asked.then[0], parameters=asked.then[0].parameters[:2])
    made = compile_cuda(replace(asked, then=(fewer,)))
    assert isinstance(made, Rejected)
    assert made.reason.startswith("merge: the kernel has 3 parameters, and the job 2 arguments")
