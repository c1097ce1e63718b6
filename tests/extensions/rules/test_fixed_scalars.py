"""Copies of a body for known scalars: right where the scalars are these, and where they are not."""

from pathlib import Path
from typing import Any

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.extensions.rules.templater import make_template

TURNED = "(const float* x, float* y, int rows, int columns)"
BODY = """{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  int r = i / columns, c = i % columns;
  y[c * rows + r] = x[i];
}
"""
OPENCL = "__kernel void k(__global const float* x, __global float* y, int rows, int columns) " + BODY.replace(
    "blockIdx.x", "get_group_id(0)"
).replace("blockDim.x", "get_local_size(0)").replace("threadIdx.x", "get_local_id(0)")
REFERENCE = "def reference(inputs, dims):\n    return {'y': inputs['x'].T.copy()}\n"
SIZES = ({"rows": 33, "columns": 70}, {"rows": 5, "columns": 128})


def job_of(source: str, backend: str = "cuda", sizes: Any = SIZES, **kernel: Any) -> Job:
    return Job.model_validate(
        {
            "name": "k",
            "kernel": {
                "backend": backend,
                "source": source,
                "entry": "k",
                "arguments": [
                    {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
                    {"name": "y", "dtype": "float32", "role": "output", "shape": ["columns", "rows"]},
                    {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
                    {"name": "columns", "dtype": "int32", "role": "scalar", "value": "columns"},
                ],
                "launch": {"grid": ["ceil_div(rows * columns, 64)"], "block": [64]},
            }
            | kernel,
            "workloads": [{"dimensions": d} for d in sizes],
            "reference": {"kind": "numpy", "source": REFERENCE},
            "rewrite": {"allow": ["fixed_scalars"]},
        }
    )


def configured(found: TemplateReport, fixed: int) -> ConfiguredKernel:
    return found.template.configured({"WS_FIXED": fixed})


def reason(job: Job) -> str:
    """Why the rule was declined."""
    return next(str(d) for d in make_template(job).declined if d.rule == "fixed_scalars")


@pytest.mark.parametrize("fixed", [0, 1])
@pytest.mark.parametrize("size", [*SIZES, {"rows": 41, "columns": 7}])
def test_it_is_right_for_the_scalars_that_it_knows_and_for_others(
    fixed: int, size: dict[str, int], tmp_path: Path
) -> None:
    job = job_of(OPENCL, "opencl")
    kernel = configured(make_template(job), fixed)
    assert (
        run_opencl([OpenClCase("k", job, kernel, Workload.model_validate({"dimensions": size}))], tmp_path)
        == []
    )


@pytest.mark.parametrize(
    ("head", "entry"),
    [
        ('extern "C" __global__ void k', "k"),
        ("static __global__ __launch_bounds__(64) void k", "k"),
        ("template <typename T, int N>\n__global__ void k", "k<float, 2>"),
        ("template <float (*f)(float), class T = decltype(nullptr)>\n__global__ void k", "k<same>"),
        ("namespace a { namespace b {\n__global__ void k", "a::b::k"),
    ],
)
@pytest.mark.parametrize("fixed", [0, 1])
def test_every_form_of_definition_compiles(head: str, entry: str, fixed: int) -> None:
    source = f"__device__ float same(float x) {{ return x; }}\n{head}{TURNED} {BODY}"
    found = make_template(job_of(source + "}}" * head.startswith("namespace"), entry=entry))
    assert [a.rule for a in found.template.applied] == ["fixed_scalars"]
    assert found.template.kernel.text.count("ws_body") == 4
    kernel = configured(found, fixed)
    assert compile_cuda(kernel.source, entry) == ""


@pytest.mark.parametrize("fixed", [0, 1])
def test_an_enumeration_and_default_values_compile(fixed: int) -> None:
    source = f"enum order {{ ROWS, COLUMNS }};\n__global__ void k{TURNED} {BODY}"
    job = job_of(source.replace("int columns)", "int columns, order o, float scale = 2.5f)"))
    more = [
        {"name": "o", "dtype": "int32", "role": "scalar", "value": 1},
        {"name": "scale", "dtype": "float32", "role": "scalar", "value": 0.1},
    ]
    data = job.model_dump(mode="json", exclude_unset=True)
    data["kernel"]["arguments"] += more
    found = make_template(Job.model_validate(data))
    kernel = configured(found, fixed)
    assert "scale == 0.10000000149011612f" in kernel.source
    assert compile_cuda(kernel.source, "k") == ""


@pytest.mark.parametrize(
    ("source", "change", "why"),
    [
        (BODY, {"sizes": [{"rows": n, "columns": 3} for n in range(1, 6)]}, "5 sets of scalars; at most 4"),
        (BODY.replace("i / columns", "i / 32").replace("i % columns", "i & 31"), {}, "no integer is divided"),
        (
            BODY.replace("i / columns", "x[0] / columns").replace("i % columns", "0"),
            {},
            "no integer is divided",
        ),
        ("{ int ws_body = rows / columns; }", {}, "is taken"),
    ],
)
def test_it_declines(source: str, change: dict[str, Any], why: str) -> None:
    assert why in reason(job_of(f"__global__ void k{TURNED} {source}", **change))


def test_local_memory_of_an_opencl_kernel_is_no_functions() -> None:
    source = OPENCL.replace("int r =", "__local float part[64];\n  part[0] = 0.0f;\n  int r =")
    assert "local memory in kernels only" in reason(job_of(source, "opencl"))


def test_zero_has_two_signs() -> None:
    source = f"__global__ void k{TURNED} {BODY}".replace("int columns)", "int columns, float a)")
    data = job_of(source).model_dump(mode="json", exclude_unset=True)
    data["kernel"]["arguments"].append({"name": "a", "dtype": "float32", "role": "scalar", "value": 0})
    found = make_template(Job.model_validate(data))
    assert "a == " not in found.template.kernel.text
