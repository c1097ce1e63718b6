"""Bodies of requests: a good one, and that one with one thing changed."""

import copy
from typing import Any

from api.routes.example_job import JOB_EXAMPLE


def body(**changes: Any) -> dict[str, Any]:
    """The documented example with some fields replaced."""
    return copy.deepcopy(JOB_EXAMPLE) | changes


def changed(path: str, value: Any) -> dict[str, Any]:
    """The documented example with the value at a dotted path replaced (`kernel.arguments.0.dtype`)."""
    job = body()
    at: Any = job
    *parents, last = path.split(".")
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at[part]
    at[int(last) if isinstance(at, list) else last] = value
    return job
