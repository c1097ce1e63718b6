"""HIP: for NVIDIA devices through NVRTC and headers of our own, for AMD's through clang or hipRTC.

Its own devices are AMD's, through hip-python; a machine without one has none, and its jobs run on those of
back end cuda. In children only. Nothing here has run on AMD hardware.
"""

from contextlib import suppress

from warpsmith.backends.base import CompileRequest, Device
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.calls import load_hip
from warpsmith.extensions.hip.compile import compile_hip, import_compiler
from warpsmith.extensions.hip.device import HipDevice
from warpsmith.extensions.hip.probe import device_info, probe_devices, runtime

__all__ = ["compile_source", "import_compiler", "import_device", "open_device", "probe"]


def import_device() -> None:
    """Import hip-python, which loads no library of ROCm yet."""
    with suppress(Unavailable):  # opening the device says so
        load_hip()


def probe() -> list[DeviceInfo]:
    """See `BackendModule.probe`."""
    return probe_devices()


def open_device(index: int) -> Device:
    """See `BackendModule.open_device`."""
    hip, _ = runtime()
    return HipDevice(hip, device_info(hip, index))


def compile_source(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    return compile_hip(request)
