"""A job whose kernel reads a variable that host code would fill."""

from typing import Any

from warpsmith.domain.jobs.job import Job

SOURCE = """#define TAPS 5
__constant__ float taps[TAPS];
extern "C" __global__ void blur(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int t = 0; t < TAPS; ++t) sum += taps[t] * x[i + t];
    y[i] = sum;
  }
}
"""
REFERENCE = """
def reference(inputs, dims):
    n, taps = dims["n"], inputs["taps"]
    return {"y": sum(taps[t] * inputs["x"][t : t + n] for t in range(5))}
"""
TAPS = {"name": "taps", "dtype": "float32", "role": "symbol", "shape": [5]}
ARGUMENTS = [
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n + 4"]},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]


def blur_job(symbols: Any = (TAPS,), source: str = SOURCE, n: int = 1000, **kernel: Any) -> Job:
    """A filter of five taps, in constant memory."""
    whole = {
        "backend": "cuda",
        "source": source,
        "entry": "blur",
        "arguments": ARGUMENTS,
        "buffers": list(symbols),
        "launch": {"grid": ["ceil_div(n, 128)"], "block": [128]},
    }
    return Job.model_validate(
        {
            "name": "blur",
            "kernel": whole | kernel,
            "workloads": [{"dimensions": {"n": n}}],
            "reference": {"kind": "numpy", "source": REFERENCE},
        }
    )
