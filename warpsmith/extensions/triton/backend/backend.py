"""Triton: a Python file with a `@triton.jit` function to a cubin, without torch and without a GPU.

The devices are CUDA's; see `warpsmith.backends.cuda.backend`. Runs in compile children.
"""

from warpsmith.backends.base import CompileRequest, Device
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable
from warpsmith.extensions.triton.backend.compile import compile_triton, import_compiler

__all__ = ["compile_source", "import_compiler", "open_device", "probe"]


def probe() -> list[DeviceInfo]:
    """See `BackendModule.probe`: Triton has no devices of its own."""
    raise Unavailable("triton: its kernels run on the devices of back end cuda")


def open_device(_index: int) -> Device:
    """See `BackendModule.open_device`."""
    raise Unavailable("triton: its kernels run on the devices of back end cuda")


def compile_source(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    return compile_triton(request)
