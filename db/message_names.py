"""Names of messages and queues. They are data, shared by whoever rings and whoever answers."""

from warpsmith.domain.device import Backend, DeviceInfo

ADVANCE = "warpsmith.advance"
"""Payload: a job id."""
RUN_TASK = "warpsmith.run_task"
"""Payload: a task id."""
COMPILE = "warpsmith.compile"
"""Payload: the key of a compilation."""

CONTROL_QUEUE = "control"
AGENT_QUEUE = "agents"
DEVICE_PREFIX = "gpu."
COMPILE_PREFIX = "compile."


def device_queue(device_class: str) -> str:
    """The queue of everything that needs a device of this class."""
    return f"{DEVICE_PREFIX}{device_class}"


def compile_queue(device: DeviceInfo) -> str:
    """Where compile nodes take what is compiled for a device.

    A cubin is made by any machine with NVRTC; OpenCL's binaries by the same kind of device only.
    """
    return COMPILE_PREFIX + ("cuda" if device.backend is Backend.CUDA else device.device_class)
