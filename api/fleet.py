"""Routes of the whole fleet: its workers, and figures for Prometheus, counted in the database."""

from fastapi import APIRouter, Response

from api.auth import allow
from api.deps import FleetSession
from db import views
from db.keys import Scope
from db.metrics import Sample, samples
from warpsmith.wire import WorkerList

router = APIRouter(tags=["service"])

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/v1/workers", dependencies=allow(Scope.READ))
def workers(session: FleetSession) -> WorkerList:
    """Workers seen lately, their devices, and the back ends they cannot use."""
    return views.worker_list(session)


@router.get(
    "/metrics",
    dependencies=allow(Scope.ADMIN),
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(session: FleetSession) -> Response:
    """Jobs by state, queues, leases, trials, workers, model use, in Prometheus' text format."""
    return Response(render(samples(session)), media_type=CONTENT_TYPE)


def render(found: list[Sample]) -> str:
    """Prometheus' text format: one block of lines a metric."""
    lines: list[str] = []
    described: set[str] = set()
    for sample in sorted(found, key=lambda s: s.name):
        if sample.name not in described:
            described.add(sample.name)
            lines.append(f"# HELP {sample.name} {sample.help}")
            lines.append(f"# TYPE {sample.name} {sample.kind}")
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(sample.labels.items()))
        lines.append(
            f"{sample.name}{{{labels}}} {sample.value}" if labels else f"{sample.name} {sample.value}"
        )
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
