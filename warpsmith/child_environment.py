"""Start of a child: its environment, and the modules that its fork server has imported.

Only the locations of drivers and toolkits are inherited.
"""

import os

from warpsmith.domain.device import Backend

_CUDA_NAMES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_OPENCL_NAMES = ("LD_LIBRARY_PATH", "OCL_ICD_VENDORS", "POCL_MAX_PTHREAD_COUNT", "POCL_AFFINITY")
_ROCM_NAMES = ("LD_LIBRARY_PATH", "ROCM_PATH", "ROCM_HOME", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_CHILDREN = tuple(f"warpsmith.sandbox.{name}_child" for name in ("compile", "device", "reference"))
_BINDINGS = {
    Backend.CUDA: ("pycuda.driver", "cuda.bindings.driver", "cuda.bindings.nvrtc"),
    Backend.OPENCL: ("pyopencl",),
    Backend.HIP: ("cuda.bindings.nvrtc", "hip"),
    Backend.TRITON: ("triton",),
}


def preloads(backend: Backend | None) -> tuple[str, ...]:
    """Modules for the fork server of a child of that back end (None: of one that computes on the CPU only).

    Importing them starts no driver: a driver does not survive a fork.
    """
    return _CHILDREN if backend is None else (*_CHILDREN, *_BINDINGS.get(backend, ()))


def child_environment(backend: Backend | None) -> dict[str, str]:
    """Environment variables for a child of that back end (None: a child that computes on the CPU only)."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    names: tuple[str, ...] = ()
    if backend in (Backend.CUDA, Backend.HIP, None):
        names += _CUDA_NAMES
        environment |= {"CUDA_CACHE_DISABLE": "1", "CUDA_MODULE_LOADING": "EAGER"}
    if backend in (Backend.HIP, None):
        names += _ROCM_NAMES
    if backend in (Backend.OPENCL, None):
        names += _OPENCL_NAMES
    # A fork has one thread: no library may have started others before it.
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    if backend is None:
        environment |= {"OMP_NUM_THREADS": "1"}
    return environment | {name: os.environ[name] for name in names if name in os.environ}
