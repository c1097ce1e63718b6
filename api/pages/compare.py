"""Two jobs side by side."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request, Response
from sqlalchemy.orm import Session

from api.pages.rendering import page, page_router
from api.requests.auth import allow
from api.routes.dependencies import SLOT, ReadSession
from db.api_keys import KeyScope
from db.repositories.jobs import JobRepository
from db.views import result_views
from db.views.job_status import job_status
from db.views.stage_seconds import stage_seconds
from warpsmith.chart_models import JobSeconds
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Comparison
from warpsmith.http_models import NO_NUL, DispatchEntry, JobResult, JobStatus
from warpsmith.report.diff_rows import DiffRow, diff_rows

router = page_router()
JOBS_OFFERED = 100
Id = Annotated[str, Query(max_length=64, pattern=NO_NUL)]


@dataclass(frozen=True)
class ComparedJob:
    """A job of the comparison, with its result if it has ended."""

    status: JobStatus
    job: Job
    result: JobResult | None
    seconds: JobSeconds

    @property
    def comparisons(self) -> dict[str, Comparison]:
        """Verified figures by workload."""
        return {c.workload: c for c in self.result.comparisons} if self.result else {}

    @property
    def entries(self) -> dict[str, DispatchEntry]:
        """Dispatch entries by workload; empty before the result."""
        return {e.workload: e for e in self.result.dispatch} if self.result else {}


@router.get("/compare", dependencies=[*allow(KeyScope.READ), SLOT])
def compare(request: Request, session: ReadSession, a: Id = "", b: Id = "") -> Response:
    """Two jobs: their figures, what serves each workload, and how their sources differ."""
    sides = [_side(session, job_id) for job_id in (a.strip(), b.strip()) if job_id]
    both = sides if len(sides) == 2 else []
    workloads = dict.fromkeys(w.workload for side in both for w in side.status.workloads)
    return page(
        request,
        "compare.html.jinja",
        asked=(a.strip(), b.strip()),
        offered=result_views.job_page(session, None, JOBS_OFFERED).items,
        sides=both,
        workloads=list(workloads),
        kernels=diff_rows(both[0].job.kernel.text, both[1].job.kernel.text) if both else [],
        winners={w: rows for w in workloads if (rows := _winners(both, w))},
    )


def _side(session: Session, job_id: str) -> ComparedJob:
    return ComparedJob(
        status=job_status(session, job_id),
        job=JobRepository(session).get(job_id, with_spec=True).spec,
        result=result_views.job_result(session, job_id),
        seconds=stage_seconds(session, job_id),
    )


def _winners(sides: list[ComparedJob], workload: str) -> list[DiffRow]:
    sources = []
    for side in sides:
        entry = side.entries.get(workload)
        sources.append(side.job.kernel.text if entry is None or entry.source is None else entry.source)
    return diff_rows(*sources)
