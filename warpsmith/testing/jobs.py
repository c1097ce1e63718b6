"""Small jobs and devices that tests share."""

from typing import Any

from warpsmith.backends.replay import LIMITS
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Job

DEVICE = DeviceInfo(
    backend=Backend.OPENCL,
    index=0,
    uid="test-0",
    name="test",
    driver="1",
    architecture="OpenCL C 1.2",
    limits=LIMITS.model_copy(update={"multiprocessors": 2}),
)

SCALE_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""


def scale_job(**changes: Any) -> Job:
    """y = 2 x over n elements; `changes` are fields of `Job`."""
    fields: dict[str, Any] = {
        "name": "scale",
        "kernel": {
            "backend": "opencl",
            "source": SCALE_SOURCE,
            "entry": "scale",
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
                {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            ],
            "launch": {"grid": ["ceil_div(n, BLOCK * PER)"], "block": ["BLOCK"]},
        },
        "workloads": [{"dimensions": {"n": 4096}}, {"dimensions": {"n": 1001}}],
        "reference": {
            "kind": "numpy",
            "source": "def reference(inputs, dims):\n    return {'y': 2.0 * inputs['x']}\n",
        },
        "parameters": [
            {"name": "BLOCK", "values": [32, 64, 128, 256], "default": 64},
            {"name": "PER", "values": [1, 2, 4, 8]},
        ],
        "budget": {"trials": 12, "seconds": 60},
    }
    return Job.model_validate(fields | changes)


def noises(width: float) -> dict[str, float]:
    """A/A widths of the workloads of `scale_job`, all equal."""
    return {workload.key: width for workload in scale_job().workloads}
