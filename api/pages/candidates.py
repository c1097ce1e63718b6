"""The candidates of a job: a tree over its rounds, and what each changed in the user's kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request, Response

from api.pages.job_heading import heading
from api.pages.rendering import page, page_router
from api.requests.auth import allow
from api.routes.dependencies import SLOT, JobId, ReadSession
from db.api_keys import KeyScope
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.tables import CandidateRow
from db.views import result_views
from warpsmith.http_models import CandidateView
from warpsmith.report.diff_rows import DiffRow, diff_rows

router = page_router()


@dataclass(frozen=True)
class Shown:
    """A candidate with its figures and its children."""

    view: CandidateView
    row: CandidateRow
    diff: list[DiffRow]
    children: list["Shown"]


@router.get("/jobs/{job_id}/candidates", dependencies=[*allow(KeyScope.READ), SLOT])
def candidates(request: Request, job_id: JobId, session: ReadSession) -> Response:
    """All candidates of a job."""
    job = JobRepository(session).get(job_id, with_spec=True).spec
    rows = CandidateRepository(session).of_job(job_id)
    views = {view.id: view for view in result_views.candidate_list(session, job_id).items}
    return page(
        request,
        "candidates.html.jinja",
        **heading(session, job_id),
        tree=_tree(rows, views, job.kernel.text, None),
        kernel=job.kernel.text,
    )


def _tree(
    rows: Sequence[CandidateRow], views: dict[str, CandidateView], kernel: str, parent: str | None
) -> list[Shown]:
    known = {row.id for row in rows}
    return [
        Shown(
            view=views[row.id],
            row=row,
            diff=diff_rows(kernel, views[row.id].source),
            children=_tree(rows, views, kernel, row.id),
        )
        for row in rows
        if (row.parent if row.parent in known else None) == parent
    ]
