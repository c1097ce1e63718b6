"""Names of messages and queues. They are data, shared by senders and receivers."""

from warpsmith.domain.device import DeviceInfo

ADVANCE = "warpsmith.advance"
"""Payload: a job id."""
RUN_TASK = "warpsmith.run_task"
"""Payload: a task id."""
COMPILE = "warpsmith.compile"
"""Payload: the key of a compilation."""
DELIVER = "warpsmith.deliver"
"""Payload: the id of a webhook."""

CONTROL_QUEUE = "control"
AGENT_QUEUE = "agents"
WEBHOOK_QUEUE = "webhooks"
DEVICE_PREFIX = "gpu."
COMPILE_PREFIX = "compile."


def device_queue(device_class: str) -> str:
    """The queue for tasks that need a device of this class."""
    return f"{DEVICE_PREFIX}{device_class}"


def compile_queue(device: DeviceInfo) -> str:
    """The queue from which compile nodes take compilations for a device.

    Any machine with NVRTC can make a cubin; OpenCL binaries need the same kind of device.
    """
    return COMPILE_PREFIX + ("cuda" if device.backend.language.compiles_anywhere else device.device_class)
