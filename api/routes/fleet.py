"""Routes for the whole fleet: workers, jobs of all tenants, and metrics for Prometheus."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric, generate_latest

from api.requests.auth import allow
from api.requests.problems import responses
from api.requests.query_names import JobsAskedFor
from api.routes.dependencies import FleetDatabase, FleetSession
from db.api_keys import KeyScope
from db.repositories.jobs import JobRepository
from db.views import result_views
from db.views.job_status import job_status
from db.views.metrics import Sample, samples
from warpsmith.http_models import NO_NUL, JobPage, JobStatus, WorkerList

router = APIRouter(tags=["service"])


@router.get("/v1/workers", dependencies=allow(KeyScope.READ))
def workers(session: FleetSession) -> WorkerList:
    """Workers seen recently, their devices, and the back ends they cannot use."""
    return result_views.worker_list(session)


TENANT = r"^([*]|[a-z0-9][a-z0-9._-]*)$"
Whose = Annotated[str, Query(max_length=64, pattern=TENANT, description="A tenant, or `*` for all tenants.")]


@router.get("/v1/fleet/jobs", dependencies=allow(KeyScope.ADMIN), responses=responses(422))
def fleet_jobs(
    session: FleetSession,
    tenant: Whose,
    only: JobsAskedFor,
    after: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="`next` of the last page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobPage:
    """Jobs of one tenant or of all tenants, newest first. For operators."""
    return result_views.fleet_job_page(
        session, after, limit, replace(only, tenant="" if tenant == "*" else tenant)
    )


@router.post(
    "/v1/fleet/jobs/{job_id}/cancel", dependencies=allow(KeyScope.ADMIN), responses=responses(404, 422)
)
def cancel_fleet_job(
    job_id: Annotated[str, Path(max_length=64, pattern=NO_NUL)], database: FleetDatabase, tenant: Whose
) -> JobStatus:
    """Cancel a job of a tenant, or of any tenant with `*`. A job that has ended is left unchanged."""
    of = database if tenant == "*" else database.of(tenant)
    with of.write() as session:
        row = JobRepository(session).cancel(job_id)
        return job_status(session, job_id).model_copy(update={"tenant": row.tenant})


@router.get(
    "/metrics",
    dependencies=allow(KeyScope.ADMIN),
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(session: FleetSession) -> Response:
    """Jobs by state, queues, leases, trials, workers, model use, in Prometheus' text format."""
    return Response(render(samples(session)), media_type=CONTENT_TYPE_PLAIN_0_0_4)


class _Collected:
    """Samples as the metric families that prometheus-client writes out."""

    def __init__(self, found: list[Sample]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Yield a family per metric name, in the order of the names."""
        by_name = attrgetter("name")
        for name, group in groupby(sorted(self._found, key=by_name), key=by_name):
            members = list(group)
            family = Metric(name.removesuffix("_total"), members[0].help, members[0].kind)
            for sample in members:
                family.add_sample(name, dict(sample.labels), sample.value)
            yield family


def render(found: list[Sample]) -> bytes:
    """The samples in Prometheus' text format, version 0.0.4."""
    return generate_latest(_Collected(found))
