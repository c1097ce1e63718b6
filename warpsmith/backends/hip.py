"""HIP: for NVIDIA devices through NVRTC and headers of our own, for AMD's through clang. In children only.

Nothing here has run on AMD hardware.
"""

from warpsmith.backends.base import CompileRequest, Device
from warpsmith.backends.hip_compile import compile_hip, import_compiler
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.errors import Unavailable

__all__ = ["compile_source", "import_compiler", "open_device", "probe"]

_ELSEWHERE = "hip: no AMD device here; its kernels run on the devices of back end cuda"


def probe() -> list[DeviceInfo]:
    """See `BackendModule.probe`."""
    raise Unavailable(_ELSEWHERE)


def open_device(_index: int) -> Device:
    """See `BackendModule.open_device`."""
    raise Unavailable(_ELSEWHERE)


def compile_source(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    return compile_hip(request)
