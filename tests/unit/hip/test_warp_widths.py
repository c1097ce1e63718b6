"""Accepted kernels on warps of 32 and of 64 threads, on the CPU; and what would differ there is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_on_cpu import results
from warpsmith.domain.job import Job
from warpsmith.domain.template import Template
from warpsmith.hip.job_translation import translated_job

WARP_SUM = """
__device__ float warp_sum(float v) {
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
"""
BLOCK_SUM = (
    WARP_SUM
    + """
__device__ float block_sum(float v) {
  __shared__ float s[32];
  const int lane = threadIdx.x % warpSize;
  const int warp = threadIdx.x / warpSize;
  v = warp_sum(v);
  if (threadIdx.x % warpSize == 0) s[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? s[threadIdx.x] : 0.0f;
  if (warp == 0) v = warp_sum(v);
  return v;
}
"""
)
ROWS = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  BODY
}
"""
INLINE = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  __shared__ float s[32];
  const unsigned lane = threadIdx.x & (warpSize - 1);
  const unsigned warp = threadIdx.x / warpSize;
  float top = -1e30f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, x[blockIdx.x * n + i]);
  for (int o = warpSize >> 1; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, o));
  if (lane == 0) { s[warp] = top; }
  __syncthreads();
  if (warp == 0) {
    float most = lane < (blockDim.x + warpSize - 1) / warpSize ? s[lane] : -1e30f;
    for (int o = warpSize / 2; o > 0; o /= 2) { most = fmaxf(most, __shfl_down_sync(0xffffffff, most, o)); }
    if (lane == 0) y[blockIdx.x] = most;
  }
}
"""
BY_THREAD = (
    WARP_SUM
    + """
extern "C" __global__ void f(const float* x, float* y, int n) {
  __shared__ float s[32];
  float v = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[blockIdx.x * n + i];
  v = warp_sum(v);
  if (threadIdx.x % warpSize == 0) s[threadIdx.x / warpSize] = v;
  __syncthreads();
  float total = s[0];
  for (int w = 1; w < blockDim.x / warpSize; ++w) total += s[w];
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x] = total;
}
"""
)
NAMED = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  __shared__ float s[32];
  float v = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[blockIdx.x * n + i];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o, 32);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) s[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < (blockDim.x >> 5) ? s[lane] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o, 32);
    if (lane == 0) y[blockIdx.x] = v;
  }
}
"""
SCANNED = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  float v = x[threadIdx.x];
  for (int d = 1; d < 16; d *= 2) {
    const float before = __shfl_up_sync(0xffffffff, v, d, 16);
    if (threadIdx.x % 16 >= d) v += before;
  }
  const float last = __shfl_sync(0xffffffff, v, 15, 16);
  if (blockIdx.x < 3 && threadIdx.x % 3 == blockIdx.x) y[blockIdx.x + 3 * (threadIdx.x / 3)] = v + last;
}
"""
VOTED = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  const float v = x[threadIdx.x];
  const int some = __any_sync(0xffffffff, v > 3.0f), every = __all_sync(0xffffffff, v < 3.1f);
  if (blockIdx.x == 0) y[threadIdx.x] = 2.0f * some + every;
}
"""
BROADCAST = BLOCK_SUM.replace(
    "if (warp == 0) v = warp_sum(v);",
    "if (warp == 0) v = warp_sum(v);\n  if (threadIdx.x == 0) s[0] = v;\n  __syncthreads();\n  v = s[0];",
)
ACCEPTED = {
    "a sum by functions": BLOCK_SUM
    + ROWS.replace("BODY", "sum = block_sum(sum);\n  if (threadIdx.x == 0) y[blockIdx.x] = sum;"),
    "a sum for every thread": BROADCAST
    + ROWS.replace("BODY", "sum = block_sum(sum);\n  if (threadIdx.x > 99) y[blockIdx.x] = sum;"),
    "a maximum in the kernel": INLINE,
    "a sum that every thread adds up": BY_THREAD,
    "a named width": NAMED,
    "a scan of 16": SCANNED,
    "votes": VOTED,
}


def job_of(source: str, block: int = 192, rows: int = 4, **fields: Any) -> Job:
    """A job whose kernel f reads rows of n elements."""
    return Job.model_validate(
        {
            "name": "f",
            "kernel": {
                "backend": "cuda",
                "source": source,
                "entry": "f",
                "arguments": [
                    {"name": "x", "dtype": "float32", "role": "input", "shape": ["4 * n"]},
                    {"name": "y", "dtype": "float32", "role": "output", "shape": [192]},
                    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                ],
                "launch": {"grid": [rows], "block": [block]},
            },
            "workloads": [{"dimensions": {"n": 229}}],
            **fields,
        }
    )


def of_widths(job: Job, hip: Job, folder: Path) -> list[np.ndarray]:
    """y of the CUDA text on warps of 32, and of the HIP text on warps of 32 and of 64."""
    runs = ((job, 32), (hip, 32), (hip, 64))
    return [results(job, [(Template(kernel=each.kernel), {})], folder, warp)[0]["y"] for each, warp in runs]


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_kernel_is_right_on_both_widths(name: str, tmp_path: Path) -> None:
    job = job_of(ACCEPTED[name])
    found = translated_job(job)
    assert [str(r) for r in found.refusals] == []
    assert found.job is not None
    cuda, narrow, wide = of_widths(job, found.job, tmp_path)
    assert (cuda == narrow).all()
    np.testing.assert_allclose(wide, cuda, rtol=2e-6, atol=1e-5)
    assert (cuda[64:-64] != -77).any()


SUMS = ACCEPTED["a sum by functions"]
REFUSED = {
    "every thread uses what the first has": SUMS.replace("if (threadIdx.x == 0) y", "y"),
    "a value for each warp": WARP_SUM
    + ROWS.replace("BODY", "sum = warp_sum(sum);\n  y[blockIdx.x * 6 + threadIdx.x / warpSize] = sum;"),
    "the first warp alone": WARP_SUM
    + ROWS.replace("BODY", "sum = warp_sum(sum);\n  if (threadIdx.x == 0) y[blockIdx.x] = sum;"),
    "an unguarded read": SUMS.replace(
        "threadIdx.x < blockDim.x / warpSize ? s[threadIdx.x] : 0.0f", "s[lane]"
    ),
    "a literal count": SUMS.replace("blockDim.x / warpSize ?", "6 ?"),
    "under a condition": SUMS.replace(
        "sum = block_sum(sum);", "if (threadIdx.x < 96) { sum = block_sum(sum); }"
    ),
    "threads have left": SUMS.replace(
        "float sum = 0.0f;", "float sum = 0.0f;\n  if (threadIdx.x > 95) return;"
    ),
    "half of a warp": SUMS.replace("warpSize / 2;", "warpSize / 4;"),
    "offsets from 16": SUMS.replace("o = warpSize / 2", "o = 16"),
    "a sum of one warp beside the total": BY_THREAD.replace("= total;", "= total + v;"),
    "shared sums of warps beside the total": BY_THREAD.replace("= total;", "= total + s[1];"),
    "a maximum of sums": BY_THREAD.replace("total += s[w]", "total = fmaxf(total, s[w])"),
    "a maximum of sums by an atomic": WARP_SUM
    + ROWS.replace("BODY", "sum = warp_sum(sum);\n  if (threadIdx.x % warpSize == 0) atomicMax(y, sum);"),
    "a number that counts": SUMS.replace(": 0.0f;\n  if", ": 1.0f;\n  if"),
    "lanes of 32": SUMS.replace("threadIdx.x % warpSize == 0", "threadIdx.x % 32 == 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_counts_on_the_width_is_refused(name: str) -> None:
    assert REFUSED[name] not in (SUMS, "")
    found = translated_job(job_of(REFUSED[name]))
    assert found.job is None
    assert found.refusals


@pytest.mark.parametrize("name", ["a value for each warp", "the first warp alone"])
def test_the_widths_tell_what_is_refused_apart(name: str, tmp_path: Path) -> None:
    job = job_of(REFUSED[name].replace("__shfl_down_sync(0xffffffff, ", "__shfl_down("))
    cuda, _, wide = of_widths(job, job, tmp_path)
    assert not np.allclose(cuda, wide)


def test_blocks_hold_whole_wavefronts() -> None:
    found = translated_job(job_of(SUMS, block=96))
    assert [r.word for r in found.refusals] == ["kernel.launch.block"]
    assert "a multiple of 64" in found.refusals[0].reason
    assert translated_job(job_of(NAMED, block=96)).job is not None


def test_searched_blocks_are_kept_to_whole_wavefronts() -> None:
    fields: dict[str, Any] = {"parameters": [{"name": "B", "values": [32, 64, 96, 128], "default": 64}]}
    job = job_of(SUMS, **fields)
    searched = job.kernel.launch.model_copy(update={"block": (type(job.kernel.launch.block[0])("B"),)})
    job = job.model_copy(update={"kernel": job.kernel.model_copy(update={"launch": searched})})
    found = translated_job(job).job
    assert found is not None
    assert [c.expression.text for c in found.constraints] == ["(B) % 64 == 0"]
