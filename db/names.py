"""Names of messages and queues. They are data, shared by whoever rings and whoever answers."""

ADVANCE = "warpsmith.advance"
"""Payload: a job id."""
RUN_TASK = "warpsmith.run_task"
"""Payload: a task id."""

CONTROL_QUEUE = "control"
AGENT_QUEUE = "agents"
DEVICE_PREFIX = "gpu."


def device_queue(device_class: str) -> str:
    """The queue of everything that needs a device of this class."""
    return f"{DEVICE_PREFIX}{device_class}"
