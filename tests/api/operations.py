"""Every operation of the API's own description, so that a new one is tested without being named."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.api.jobs import body
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.lessons.lesson import Lesson

PUBLIC = {"GET /healthz", "GET /readyz"}
BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "POST /v1/jobs": body,
    "POST /v1/jobs/check": body,
    "POST /v1/agent-requests/{request_id}/reply": lambda: {"answer": {}},
    "POST /v1/webhooks": lambda: {"url": "https://93.184.216.34/hook"},
    "POST /v1/lessons": lambda: {"job": "elsewhere", "lesson": lesson()},
}


def lesson() -> dict[str, Any]:
    """What a job taught that found nothing."""
    made = Lesson(
        job=scale_job(), device=DEVICE, device_class=DEVICE.device_class, speedup=1.0, attempts=(), served=()
    )
    return made.model_dump(mode="json", exclude_unset=True)


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    parameters: tuple[str, ...]
    """Names in the path."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def call(self, http: httpx2.Client, **ids: str) -> httpx2.Response:
        """Send a request that is well-formed. A stream of events is not read."""
        made = BODIES.get(self.name)
        json = None if made is None else made()
        with http.stream(self.method, self.path.format(**ids), json=json) as reply:
            if not reply.headers.get("content-type", "").startswith("text/event-stream"):
                reply.read()
            return reply


def operations(description: dict[str, Any]) -> Iterator[Operation]:
    """All of them."""
    for path, item in description["paths"].items():
        for method, operation in item.items():
            given = [p for p in operation.get("parameters", ()) if p["in"] == "path"]
            assert "requestBody" not in operation or f"{method.upper()} {path}" in BODIES, path
            yield Operation(method.upper(), path, tuple(p["name"] for p in given))
