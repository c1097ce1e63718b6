"""CUDA jobs whose blocks wait for each other, or read each other's shared memory."""

from typing import Any

from warpsmith.domain.jobs.job import Job

COOPERATIVE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void share(const float* x, float* sums, float* y, int n) {
  int total = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0.0f;
  for (int i = me; i < n; i += total) s += x[i];
  sums[me] = s;
  cg::this_grid().sync();
  float first = 0.0f;
  for (int b = 0; b < total; b += 64) first += sums[b];
  for (int i = me; i < n; i += total) y[i] = x[i] - first;
}
"""
CLUSTERED = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void share(const float* x, float* sums, float* y, int n) {
  __shared__ float mine[64];
  auto cluster = cg::this_cluster();
  int me = blockIdx.x * blockDim.x + threadIdx.x;
  mine[threadIdx.x] = me < n ? x[me] : 0.0f;
  cluster.sync();
  float all = 0.0f;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) all += cluster.map_shared_rank(mine, r)[threadIdx.x];
  cluster.sync();
  if (me < n) { y[me] = all; sums[me] = (float)cluster.num_blocks(); }
}
"""


def sharing(source: str, *, blocks: int = 16, **launch: Any) -> Job:
    """The job of one of the kernels: `blocks` of 64 threads over 16 of them, which the launch joins."""
    kernel = {
        "backend": "cuda",
        "source": source,
        "entry": "share",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "sums", "dtype": "float32", "role": "output", "shape": [64 * blocks]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": [blocks], "block": [64], **launch},
    }
    return Job.model_validate(
        {"name": "share", "kernel": kernel, "workloads": [{"dimensions": {"n": 64 * blocks}}]}
    )
