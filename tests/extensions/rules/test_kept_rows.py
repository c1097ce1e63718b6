"""Rows kept in registers: right on every shape, as CUDA on the CPU and on PoCL; and reasons to decline."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.cuda_on_cpu import results
from tests.extensions.rules.test_declines import reason
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template

SOFTMAX = """
extern "C" __global__ void k(const float* in, float* out, int n, int rows) {
  __shared__ float part[64];
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = in + row * n;
  float most = -1e30f;
  for (int i = t; i < n; i += blockDim.x) most = fmaxf(most, p[i]);
  part[t] = most;
  __syncthreads();
  for (int j = 0; j < blockDim.x; ++j) most = fmaxf(most, part[j]);
  for (int i = t; i < n; i += blockDim.x) out[row * n + i] = expf(p[i] - most);
  p = out + row * n;
  float sum = 0.0f;
  for (int i = t; i < n; i += blockDim.x) sum += p[i];
  __syncthreads();
  part[t] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int j = 0; j < blockDim.x; ++j) sum += part[j];
  for (int i = t; i < n; i += blockDim.x) out[row * n + i] = p[i] / sum;
}
"""
NORM_IN_PLACE = """
extern "C" __global__ void k(const float* w, float* y, int n, int rows) {
  __shared__ float part[64];
  float* v = y + blockIdx.x * n;
  float sum = 0.0f;
#pragma unroll 2
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float z = v[i] + w[i];
    v[i] = z;
    sum += z * z;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int j = 0; j < blockDim.x; ++j) sum += part[j];
  if (blockIdx.x == 1) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v[i] = v[i] * w[i] / (1.0f + sum);
}
"""
ROWS_IN_TURN = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  __shared__ float part[64];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[row * n + i];
    __syncthreads();
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int j = 0; j < blockDim.x; ++j) sum += part[j];
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[row * n + i] = x[row * n + i] + sum;
  }
}
"""
COMBINED = """sum = 0.0f;
    for (int j = 0; j < blockDim.x; ++j) sum += part[j];"""
OPENCL_NORM = """
__kernel void k(__global const float* x, __global float* y, int n, int rows) {
  __local float part[64];
  const int t = get_local_id(0), row = get_group_id(0);
  float sum = 0.0f;
  for (int i = t; i < n; i += get_local_size(0)) sum += x[row * n + i];
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int j = 0; j < (int)get_local_size(0); ++j) sum += part[j];
  const float mean = sum / n;
  float square = 0.0f;
  for (int i = t; i < n; i += get_local_size(0)) {
    const float d = x[row * n + i] - mean;
    square += d * d;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  part[t] = square;
  barrier(CLK_LOCAL_MEM_FENCE);
  square = 0.0f;
  for (int j = 0; j < (int)get_local_size(0); ++j) square += part[j];
  for (int i = t; i < n; i += get_local_size(0))
    y[row * n + i] = (x[row * n + i] - mean) * rsqrt(square / n + 1e-5f);
}
"""
REFERENCE = """
import numpy as np

def reference(inputs, dims):
    x = inputs["x"].astype("float64").reshape(dims["rows"], dims["n"])
    centred = x - x.mean(axis=1, keepdims=True)
    return {"y": (centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)).reshape(-1)}
"""


def job_of(source: str, n: Sequence[int] = (203,), backend: str = "cuda", **more: Any) -> Job:
    """A kernel with one row of `n` elements for each of three blocks of 64 threads."""
    names = source.split("void k(")[1].split(",")
    first, second = (name.split()[-1].lstrip("*") for name in names[:2])
    written, read = ("inout", ["n"]) if first == "w" else ("output", ["rows * n"])
    fields = {
        "name": "kept",
        "kernel": {
            "backend": backend,
            "source": source,
            "entry": "k",
            "arguments": [
                {"name": first, "dtype": "float32", "role": "input", "shape": read},
                {"name": second, "dtype": "float32", "role": written, "shape": ["rows * n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
            ],
            "launch": {"grid": ["rows"], "block": [64]},
        },
        "workloads": [{"dimensions": {"rows": 3, "n": length}} for length in n],
        "reference": {"kind": "kernel"},
        "rewrite": {"deny": ["block_size"]},
    }
    return Job.model_validate(fields | more)


def template_of(job: Job) -> Template:
    report = make_template(job)
    assert "row_in_registers" in {a.rule for a in report.template.applied}, report.declined
    return report.template


def configurations(template: Template, keeps: Sequence[int], packs: Sequence[int]) -> list[dict[str, int]]:
    defaults = {name: int(value) for name, value in template.space.defaults.items()}
    chosen = [defaults | {"WS_KEEP": k, "WS_KEEP_PACK": p} for k, p in product(keeps, packs)]
    return [defaults, *chosen]


@pytest.mark.parametrize("source", [SOFTMAX, NORM_IN_PLACE, ROWS_IN_TURN], ids=["softmax", "norm", "rows"])
@pytest.mark.parametrize("n", [1, 64, 203, 512])
def test_cuda_rows_in_registers_are_right(source: str, n: int, tmp_path: Path) -> None:
    job = job_of(source, (n,))
    template = template_of(job)
    own = Template(kernel=job.kernel)
    chosen = configurations(template, (1, 4), (1, 4))
    first, *others = results(job, [(own, {}), *((template, values) for values in chosen)], tmp_path)
    for values, found in zip(chosen, others, strict=True):
        for name, expected in first.items():
            np.testing.assert_allclose(
                found[name], expected, rtol=2e-5, atol=1e-6, err_msg=f"{values} {name}"
            )


def test_opencl_rows_in_registers_are_right(tmp_path: Path) -> None:
    reference = {"kind": "numpy", "source": REFERENCE}
    job = job_of(OPENCL_NORM, (1, 65, 400), "opencl", reference=reference)
    template = template_of(job)
    cases = [
        OpenClCase(job.name, job, template.configured(values), workload)
        for workload in job.workloads
        for values in configurations(template, (1, 8), (1, 2, 8))
    ]
    assert run_opencl(cases, tmp_path) == []


def test_what_is_read_again_is_read_once_and_what_is_overwritten_is_not_stored() -> None:
    text = template_of(job_of(SOFTMAX)).kernel.text
    kept = text[text.index("__global__") :].split("#else")[0]
    assert kept.count("ws_keep_load(") == 1
    assert kept.count("ws_keep_store(") == 1
    early = template_of(job_of(NORM_IN_PLACE)).kernel.text
    assert early.count("ws_keep_store(&v[ws_first]") == 2, "the kernel may return before the second store"


@pytest.mark.parametrize("source", [SOFTMAX, NORM_IN_PLACE])
def test_the_cuda_text_compiles(source: str) -> None:
    template = template_of(job_of(source))
    for values in configurations(template, (2,), (1, 4)):
        assert compile_cuda(template.configured(values).source, "k") == "", values


def auto_rows() -> str:
    """A kernel whose rows are `auto` pointers, of which one is not declared before the second loop."""
    text = NORM_IN_PLACE.replace("float* v = y + blockIdx.x * n;", "auto* v = y + blockIdx.x * n;")
    first = "const float z = v[i] + w[i];"
    second = "v[i] = v[i] * w[i] / (1.0f + sum);"
    third = "  for (int i = threadIdx.x; i < n; i += blockDim.x) v[i] += u[i];\n}"
    assert first in text
    assert second in text
    text = text.replace(first, "const float z = v[i];")
    text = text.replace("  if (blockIdx.x == 1) return;\n", "  const auto* u = w;\n")
    return text.replace(second, "v[i] = v[i] * u[i] / (1.0f + sum);").rstrip().removesuffix("}") + third


def test_elements_of_auto_pointers_have_the_type_that_the_pointer_leads_to(tmp_path: Path) -> None:
    job = job_of(auto_rows())
    template = template_of(job)
    text = template.kernel.text
    assert "WsKeep<auto>" not in text
    assert text.index("const auto* u") < text.index("ws_keep_element(&u[0])")
    chosen = configurations(template, (1, 4), (1, 4))
    for values in chosen:
        assert compile_cuda(template.configured(values).source, "k") == "", values
    first, *others = results(
        job, [(Template(kernel=job.kernel), {}), *((template, values) for values in chosen)], tmp_path
    )
    for values, found in zip(chosen, others, strict=True):
        np.testing.assert_allclose(found["y"], first["y"], rtol=2e-5, atol=1e-6, err_msg=str(values))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("sum += x[row * n + i];", "sum += x[row * n];", "no element is used in two loops"),
        ("y[row * n + i] = x[row * n + i] + sum;", "y[i] = x[i] + sum;", "no element is used in two loops"),
        ("+ sum;", "+ sum + y[row * n + i + 1];", "of the same buffer"),
        ("i < n; i += blockDim.x) y", "i < n - 1; i += blockDim.x) y", "no two loops of one block"),
        ("part[threadIdx.x] = sum;", "part[threadIdx.x] = sum; n -= 1;", "the bounds of its loops change"),
        (COMBINED, "", "sum, of which every thread has another"),
        ("const float* x", "const volatile float* x", "no element is used in two loops"),
        ("(int i = threadIdx.x; i < n; i += blockDim.x) sum +=", "(int i = 0; i < n; ++i) sum +=", "no two"),
    ],
)
def test_what_cannot_be_kept_declines(old: str, new: str, why: str) -> None:
    assert old in ROWS_IN_TURN
    found = reason(make_template(job_of(ROWS_IN_TURN.replace(old, new))), "row_in_registers")
    assert why in found, found


def test_an_element_that_another_thread_may_change_is_read_again() -> None:
    second = "for (int i = threadIdx.x; i < n; i += blockDim.x) v[i] = v[i] * w"
    assert second in NORM_IN_PLACE
    other = "if (threadIdx.x == 0) v[0] = 1.0f;\n  __syncthreads();\n  "
    text = template_of(job_of(NORM_IN_PLACE)).kernel.text
    assert "ws_row_1" in text
    text = template_of(job_of(NORM_IN_PLACE.replace(second, other + second))).kernel.text
    assert "ws_row_0" in text
    assert "ws_row_1" not in text, "only w stays"


def test_an_element_that_its_thread_uses_outside_the_loops_stays_with_it() -> None:
    packs = {p.name: p.values for p in template_of(job_of(ROWS_IN_TURN)).space.parameters}
    assert packs["WS_KEEP_PACK"] == (1, 2, 4)
    own = ROWS_IN_TURN.replace("+ sum;", "+ sum;\n    y[row * n + threadIdx.x] += 1.0f;")
    packs = {p.name: p.values for p in template_of(job_of(own, (64,))).space.parameters}
    assert packs["WS_KEEP_PACK"] == (1,)
