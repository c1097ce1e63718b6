"""The pages of a job: overview, trials, log; and what can be downloaded."""

import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session

from api.pages.job_heading import heading
from api.pages.rendering import page, page_router
from api.requests.auth import allow
from api.requests.problems import Conflict
from api.routes.dependencies import SLOT, CurrentDatabase, JobId, ReadSession
from db.api_keys import KeyScope
from db.repositories.jobs import JobRepository
from db.views import result_views
from db.views.job_facts import job_facts
from db.views.stage_seconds import stage_seconds
from warpsmith.http_models import JobResult, TrialView
from warpsmith.report.tables import has_gain, reason_lines
from warpsmith.report.tuned_file import tuned_sources

router = page_router()
READS = [*allow(KeyScope.READ), SLOT]
PAGE_OF_TRIALS = 1000
After = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


@router.get("/jobs/{job_id}", dependencies=READS)
def overview(request: Request, job_id: JobId, session: ReadSession) -> Response:
    """A job at a glance."""
    shown = heading(session, job_id)
    result = result_views.job_result(session, job_id)
    gained = result is not None and has_gain(result)
    why = [] if result is None else reason_lines(result)
    if gained and result is not None and result.speedup is not None:
        why[0] = why[0].removeprefix(f"{result.speedup:.2f}x: ")  # the figure stands above it
    return page(
        request,
        "job.html.jinja",
        **shown,
        facts=job_facts(session, job_id),
        seconds=stage_seconds(session, job_id),
        rejections=result_views.rejections(session, job_id),
        result=result,
        comparisons={} if result is None else {c.workload: c for c in result.comparisons},
        kept={} if result is None else {c.workload: c for c in result.no_gain},
        gained=gained,
        won=tuned_sources(result) if result is not None else [],
        why=why,
        weights={w.key: w.weight for w in JobRepository(session).get(job_id, with_spec=True).spec.workloads},
    )


@router.get("/jobs/{job_id}/trials", dependencies=READS)
def trials(request: Request, job_id: JobId, session: ReadSession, after: After = None) -> Response:
    """Trials of a job in the order of proposal, with what came of them."""
    shown = heading(session, job_id)
    found = result_views.trial_page(session, job_id, after, PAGE_OF_TRIALS)
    return page(request, "trials.html.jinja", **shown, trials=found.items, following=found.next)


@router.get("/jobs/{job_id}/log", dependencies=READS)
def log(request: Request, job_id: JobId, session: ReadSession, after: After = None) -> Response:
    """Events of a job as lines, oldest first."""
    shown = heading(session, job_id)
    found = result_views.event_page(session, job_id, after or 0, PAGE_OF_TRIALS)
    return page(request, "log.html.jinja", **shown, events=found.items, following=found.next)


@router.post("/jobs/{job_id}/cancel", dependencies=allow(KeyScope.SUBMIT))
def cancel(job_id: JobId, database: CurrentDatabase) -> Response:
    """End the job, and show it."""
    with database.write() as session:
        JobRepository(session).cancel(job_id)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.get("/jobs/{job_id}/report.html", dependencies=READS)
def report(job_id: JobId, session: ReadSession) -> Response:
    """The report, for a file: it may run the scripts that it carries, wherever it is opened."""
    from warpsmith.report.bundle import report_html

    result = _ended(session, job_id)
    text = report_html(result, list(_trials(session, job_id)))
    return _file(text.encode(), "text/html; charset=utf-8", f"{result.job.name}-report.html")


@router.get("/jobs/{job_id}/result.json", dependencies=READS)
def result(job_id: JobId, session: ReadSession) -> Response:
    """The evidence, as `GET /v1/jobs/{id}/result` has it."""
    found = _ended(session, job_id)
    return _file(found.model_dump_json(indent=1).encode(), "application/json", f"{found.job.name}.json")


@router.get("/jobs/{job_id}/bundle.zip", dependencies=READS)
def bundle(job_id: JobId, session: ReadSession) -> Response:
    """All files that `warpsmith result --out` writes."""
    from warpsmith.report.bundle import write_bundle

    found = _ended(session, job_id)
    packed = io.BytesIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path in write_bundle(found, list(_trials(session, job_id)), Path(folder)):
            archive.write(path, f"{found.job.name}/{path.name}")
    return _file(packed.getvalue(), "application/zip", f"{found.job.name}.zip")


def _ended(session: Session, job_id: str) -> JobResult:
    found = result_views.job_result(session, job_id)
    if found is None:
        raise Conflict(f"job {job_id} has not ended; its files exist once it has")
    return found


def _trials(session: Session, job_id: str) -> Iterator[TrialView]:
    after = None
    while True:
        found = result_views.trial_page(session, job_id, after, PAGE_OF_TRIALS)
        yield from found.items
        if found.next is None:
            return
        after = found.next


def _file(body: bytes, kind: str, name: str) -> Response:
    # Names of jobs have letters, digits and " ._+-" alone.
    headers = {
        "Content-Disposition": f'attachment; filename="{name.replace(" ", "_")}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "no-store",
    }
    return Response(body, media_type=kind, headers=headers)
