"""`init` on kernels that read constant memory which host code fills."""

from pathlib import Path

import pytest

from tests.extensions.scaffold.test_init import job_of, written
from warpsmith.domain.jobs.job import Job

SOURCE = """
#define TAPS (2 * 2)
__constant__ float taps[TAPS];
__constant__ float4 colours[3];
__constant__ int bias;
__constant__ float given[2] = {1.0f, 2.0f};
__constant__ float others[7];
__constant__ float open_ended[K];
struct P { int a; };
__constant__ P params;
#define BIAS bias
__device__ float tap(int t) { return taps[t] * colours[0].x; }
__global__ void other(float* y) { y[0] = others[0]; }
__global__ void blur(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = tap(i % 4) * x[i] + BIAS + given[0]@;
}
"""


def job(tmp_path: Path, more: str = "") -> Job:
    (source,) = written(tmp_path, k_dot_cu=SOURCE.replace("@", more))
    return job_of([source], tmp_path, entry="blur")


@pytest.mark.parametrize(("more", "further"), [("", []), (" + open_ended[1] + params.a", ["open_ended"])])
def test_what_the_kernel_reads_and_nothing_fills_is_a_symbol(
    more: str, further: list[str], tmp_path: Path
) -> None:
    found = {a.name: (a.dtype.value, [e.text for e in a.shape]) for a in job(tmp_path, more).kernel.symbols}
    shapes = {"taps": ("float32", ["4"]), "colours": ("float32", ["3", "4"]), "bias": ("int32", ["1"])}
    assert found == shapes | {name: ("float32", ["1"]) for name in further}


def test_a_kernel_without_such_memory_gets_no_symbols(tmp_path: Path) -> None:
    (source,) = written(tmp_path, k_dot_cu="__global__ void k(float* y, int n) { y[0] = n; }")
    assert job_of([source], tmp_path, entry="k").kernel.buffers == ()
