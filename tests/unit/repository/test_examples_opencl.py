"""Every OpenCL example gives what its reference says, on PoCL."""

from pathlib import Path

from testbed.example_jobs import FAMILIES, OpenClCase, load_example, run_opencl, small
from warpsmith.domain.templates.template import ConfiguredKernel


def _cases() -> list[OpenClCase]:
    cases = []
    for family in FAMILIES:
        job = small(load_example(family, "opencl"), family)
        cases += [OpenClCase(family, job, ConfiguredKernel(kernel=job.kernel), w) for w in job.workloads]
    return cases


def test_examples_are_right(tmp_path: Path) -> None:
    assert run_opencl(_cases(), tmp_path) == []


def test_the_harness_sees_a_wrong_kernel(tmp_path: Path) -> None:
    job = small(load_example("silu_and_mul", "opencl"), "silu_and_mul")
    wrong = job.kernel.model_copy(update={"source": job.kernel.text.replace("1.0f + exp", "1.1f + exp")})
    case = OpenClCase("wrong", job, ConfiguredKernel(kernel=wrong), job.workloads[0])
    assert len(run_opencl([case], tmp_path)) == 1
