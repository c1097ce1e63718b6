"""The result of a job on a CUDA device, written by hand: a scaled copy, tuned on two shapes."""

from datetime import UTC, datetime
from typing import Any

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import CandidateState, JobState
from warpsmith.domain.templates.outcome import CheckedShape, Comparison, Interval, Verdict
from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.http_models import CandidateView, DispatchEntry, JobResult
from warpsmith.testing.jobs import DEVICE

OWN = """
#ifndef BLOCK
#define BLOCK 128
#endif
extern "C" __global__ void scaled(const float* __restrict__ x, float* __restrict__ y, const int n,
                                  const float by) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}
"""
TUNED = """#define PER 4
template <int N>
__global__ void scaled(const float* __restrict__ x, float* __restrict__ y, const int n, const float by) {
  const int from = (blockIdx.x * blockDim.x + threadIdx.x) * N;
#pragma unroll
  for (int k = 0; k < N; k++)
    if (from + k < n) y[from + k] = by * x[from + k];
}
"""
CONFIGURATION: Configuration = {"BLOCK": 256, "PER": 4}
BY = 2.5


def job(**changes: Any) -> Job:
    """Rows of a matrix, times a number."""
    fields = {
        "name": "scaled",
        "kernel": {
            "backend": "cuda",
            "source": OWN,
            "entry": "scaled",
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
                {"name": "y", "dtype": "float32", "role": "output", "shape": ["rows", "columns"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "rows * columns"},
                {"name": "by", "dtype": "float32", "role": "scalar", "value": BY},
            ],
            "launch": {"grid": ["ceil_div(rows * columns, 128)"], "block": ["128"]},
        },
        "workloads": [{"dimensions": {"rows": r, "columns": 1024}} for r in (256, 1024)],
    }
    return Job.model_validate(fields | changes)


AWKWARD = """
__device__ bool unused;
extern "C" __global__ void lambda(const float* __restrict__ in, float* __restrict__ key, const int index,
                                  const float torch, const bool twice) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < index) key[i] = (twice ? 2.0f : 1.0f) * torch * in[i];
}
"""


def awkward() -> JobResult:
    """A kernel without gain whose names are words of Python or of generated code; no tensor shows `shape`."""
    kernel = {
        "backend": "cuda",
        "source": AWKWARD,
        "entry": "lambda",
        "arguments": [
            {"name": "in", "dtype": "float32", "role": "input", "shape": ["shape + 1"]},
            {"name": "key", "dtype": "float32", "role": "output", "shape": ["shape + 1"]},
            {"name": "index", "dtype": "int32", "role": "scalar", "value": "shape + 1"},
            {"name": "torch", "dtype": "float32", "role": "scalar", "value": BY},
            {"name": "twice", "dtype": "bool", "role": "scalar", "value": 1},
        ],
        "launch": {"grid": ["ceil_div(shape + 1, 128)"], "block": ["128"]},
    }
    made = job(kernel=kernel, workloads=[{"dimensions": {"shape": 1000}}])
    entry = (
        result()
        .dispatch[0]
        .model_copy(
            update={
                "workload": made.workloads[0].key,
                "configuration": None,
                "candidate": None,
                "source": None,
                "entry": "lambda",
                "launch": made.kernel.launch,
            }
        )
    )
    return result(job=made, dispatch=(entry,), between=(), comparisons=(), speedup=1.0)


def in_hip(**changes: Any) -> JobResult:
    """The same kernels as HIP sources, tuned where `result` was."""
    head = "#include <hip/hip_runtime.h>\n"
    was = result()
    kernel = was.job.kernel.model_copy(update={"backend": Backend.HIP, "source": head + OWN})
    entries = tuple(entry.model_copy(update={"source": head + TUNED}) for entry in was.dispatch)
    made = was.job.model_copy(update={"kernel": kernel})
    return was.model_copy(update={"job": made, "dispatch": entries, **changes})


def result(**changes: Any) -> JobResult:
    """Tuned on both shapes, and looked at between them."""
    made = job()
    launch = made.kernel.launch.model_copy(
        update={
            "grid": (type(made.kernel.launch.grid[0])("ceil_div(rows * columns, BLOCK * PER)"),),
            "block": (type(made.kernel.launch.grid[0])("BLOCK"),),
        }
    )
    keys = [w.key for w in made.workloads]
    space = Space.model_validate(
        {
            "parameters": [
                {"name": "BLOCK", "values": [128, 256], "default": 128},
                {"name": "PER", "values": [1, 4], "default": 1},
            ],
            "constraints": [{"expression": "columns % PER == 0"}],
        }
    )
    fields: dict[str, Any] = {
        "id": "j1",
        "job": made,
        "state": JobState.DONE,
        "device": "NVIDIA H100 80GB HBM3",
        "driver": "580.95",
        "device_class": "cuda-nvidia-h100-80gb-hbm3-580.95",
        "architecture": "sm_90",
        "limits": DEVICE.limits.model_copy(update={"max_threads_per_block": 1024}),
        "speedup": 1.5,
        "comparisons": tuple(
            Comparison(
                workload=key,
                configuration_key="BLOCK=256,PER=4",
                baseline_us=6.0,
                best_us=4.0,
                speedup=Interval(estimate=1.5, low=1.4, high=1.6),
                verdict=Verdict.FASTER,
                cache="cold",
                pairs=12,
            )
            for key in keys
        ),
        "dispatch": tuple(
            DispatchEntry(
                workload=key,
                configuration=CONFIGURATION,
                candidate="c1",
                source=TUNED,
                entry="scaled<4>",
                grid=(1, 1, 1),
                block=(256, 1, 1),
                shared_bytes=0,
                launch=launch,
                speedups={key: 1.4},
                searched=dict.fromkeys(keys, 1.5),
            )
            for key in keys
        ),
        "between": (
            CheckedShape(
                dimensions={"rows": 512, "columns": 1024},
                candidate="c1",
                configuration=CONFIGURATION,
                speedup=1.4,
            ),
        ),
        "trials_measured": 4,
        "trials_rejected": 0,
        "trials_per_second": 1.0,
        "rejections": (),
        "seconds": 12.0,
        "finished_at": datetime(2026, 11, 26, tzinfo=UTC),
        "candidates": (
            CandidateView(
                id="c1",
                round=1,
                state=CandidateState.SEARCHED,
                applied=(),
                declined=(),
                space=space,
                feasible=4,
                source=TUNED,
                entry="scaled<4>",
            ),
        ),
        "warpsmith_version": "0.1.0",
        "warpsmith_commit": "0000000",
    }
    return JobResult.model_validate(fields | changes)
