"""The PyOpenCL module, and the numbered devices of this machine."""

from typing import Any

from warpsmith import extras
from warpsmith.backends.opencl.pocl_cpu_name import name_unknown_cpu
from warpsmith.errors import Unavailable

POCL = "Portable Computing Language"


def opencl() -> Any:
    """The pyopencl module.

    Raises:
        Unavailable: the extra `opencl` is not installed.
    """
    try:
        import pyopencl
    except ImportError as exc:
        raise Unavailable(f"opencl: {extras.advice('pyopencl')} ({exc})") from exc
    return pyopencl


def devices() -> list[Any]:
    """CPU and GPU devices, platform by platform.

    Raises:
        Unavailable: there is no platform.
    """
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error as exc:
        raise Unavailable(
            "opencl: no platform; install a driver's ICD, or pocl-binary-distribution for the CPU"
        ) from exc
    found = []
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except cl.Error:
            continue
        found += [d for d in devices if d.type & (cl.device_type.CPU | cl.device_type.GPU)]
    for device in found:
        if device.type & cl.device_type.CPU and device.platform.name.strip() == POCL:
            name_unknown_cpu(device)
    return found
