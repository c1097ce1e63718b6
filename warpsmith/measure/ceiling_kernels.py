"""The service's own kernels that measure a device's ceilings, in CUDA and OpenCL."""

import hashlib

from warpsmith.domain.device import Backend
from warpsmith.domain.kernels.kernel import Kernel

BLOCK = 256
FMA_CHAINS = 8
"""Independent sums per thread, to hide latency."""
FMA_STEPS = 512
"""Multiply-adds per sum."""

_CUDA_HEAD = """#define KERNEL extern "C" __global__ void
#define GLOBAL
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define COUNT (gridDim.x * blockDim.x)
#define FMA fmaf
"""
_OPENCL_HEAD = """#define KERNEL __kernel void
#define GLOBAL __global
#define INDEX get_global_id(0)
#define COUNT get_global_size(0)
#define FMA fma
"""
_COPY = """KERNEL copy(GLOBAL const float4* x, GLOBAL float4* y, const int n) {
  for (int i = INDEX; i < n; i += COUNT) y[i] = x[i];
}
"""
_MULTIPLY = """KERNEL multiply(GLOBAL const float* x, GLOBAL float* y, const int n) {
  const int i = INDEX;
  float a = x[i], s[CHAINS];
  for (int c = 0; c < CHAINS; ++c) s[c] = a + c;
  for (int k = 0; k < STEPS; ++k)
    for (int c = 0; c < CHAINS; ++c) s[c] = FMA(s[c], 0.999f, a);
  float sum = 0.0f;
  for (int c = 0; c < CHAINS; ++c) sum += s[c];
  y[i] = sum;
}
"""
_ONES = {"distribution": "constant", "low": 1.0}
_NOTHING = """KERNEL nothing(GLOBAL const float* x, GLOBAL float* y, const int n) {}
"""


def kernels_digest() -> str:
    """Hash of the kernels: with others, ceilings mean something else."""
    texts = (_CUDA_HEAD, _OPENCL_HEAD, _COPY, _MULTIPLY, _NOTHING, str((BLOCK, FMA_CHAINS, FMA_STEPS)))
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def copy_kernel(backend: Backend) -> Kernel:
    """Copies n vectors of four floats."""
    return _kernel(backend, "copy", _COPY, "4 * n", f"min(ceil_div(n, {BLOCK}), 65536)")


def multiply_kernel(backend: Backend) -> Kernel:
    """Does `2 * FMA_CHAINS * FMA_STEPS` operations for each of n elements (a multiple of the block)."""
    defines = f"#define CHAINS {FMA_CHAINS}\n#define STEPS {FMA_STEPS}\n"
    return _kernel(backend, "multiply", defines + _MULTIPLY, "n", f"n // {BLOCK}")


def empty_kernel(backend: Backend) -> Kernel:
    """A kernel that does nothing."""
    return _kernel(backend, "nothing", _NOTHING, "n", "1")


def _kernel(backend: Backend, entry: str, body: str, extent: str, grid: str) -> Kernel:
    head = _OPENCL_HEAD if backend.language.is_opencl_c else _CUDA_HEAD
    return Kernel.model_validate(
        {
            "backend": backend,
            "source": head + body,
            "entry": entry,
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": [extent], "draw": _ONES},
                {"name": "y", "dtype": "float32", "role": "output", "shape": [extent]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            ],
            "launch": {"grid": [grid], "block": [BLOCK]},
        }
    )
