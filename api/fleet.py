"""Routes of the whole fleet: its workers, everybody's jobs, and figures for Prometheus."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.auth import allow
from api.dependencies import FleetDatabase, FleetSession
from api.problems import responses
from api.query_names import NO_NUL, JobsAskedFor
from db import result_views
from db.api_keys import Scope
from db.metrics import Sample, samples
from db.repositories.jobs import JobRepository
from db.status import job_status
from warpsmith.http_models import JobPage, JobStatus, WorkerList

router = APIRouter(tags=["service"])

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/v1/workers", dependencies=allow(Scope.READ))
def workers(session: FleetSession) -> WorkerList:
    """Workers seen lately, their devices, and the back ends they cannot use."""
    return result_views.worker_list(session)


TENANT = r"^([*]|[a-z0-9][a-z0-9._-]*)$"
Whose = Annotated[str, Query(max_length=64, pattern=TENANT, description="A tenant; `*`: everybody.")]


@router.get("/v1/fleet/jobs", dependencies=allow(Scope.ADMIN), responses=responses(422))
def fleet_jobs(
    session: FleetSession,
    tenant: Whose,
    only: JobsAskedFor,
    after: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="`next` of the last page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobPage:
    """Jobs of a tenant or of everybody, newest first, for whoever runs the service."""
    return result_views.fleet_job_page(
        session, after, limit, replace(only, tenant="" if tenant == "*" else tenant)
    )


@router.post("/v1/fleet/jobs/{job_id}/cancel", dependencies=allow(Scope.ADMIN), responses=responses(404, 422))
def cancel_fleet_job(
    job_id: Annotated[str, Path(max_length=64, pattern=NO_NUL)], database: FleetDatabase, tenant: Whose
) -> JobStatus:
    """End a job of a tenant, whoever's it is with `*`. One that has ended stays as it is."""
    of = database if tenant == "*" else database.of(tenant)
    with of.write() as session:
        row = JobRepository(session).cancel(job_id)
        return job_status(session, job_id).model_copy(update={"tenant": row.tenant})


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
