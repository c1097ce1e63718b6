"""The candidates of a job: a tree over its rounds, and what each changed in the user's kernel."""

from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import Request, Response

from api.pages.job_heading import heading
from api.pages.rendering import page, page_router
from api.requests.auth import allow
from api.routes.dependencies import SLOT, JobId, ReadSession
from db.api_keys import KeyScope
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow
from db.views import result_views
from warpsmith.domain.templates.space import Configuration
from warpsmith.http_models import CandidateView
from warpsmith.report.diff_rows import DiffRow, diff_rows
from warpsmith.source.tree.published_source import published_source

router = page_router()


@dataclass(frozen=True)
class Shown:
    """A candidate with its figures and its children."""

    view: CandidateView
    row: CandidateRow
    configuration: Configuration | None
    """The fastest; None if none was measured."""
    source: str
    """The kernel in that configuration, without the branches of others; without one the template."""
    diff: list[DiffRow]
    children: list["Shown"]


@router.get("/jobs/{job_id}/candidates", dependencies=[*allow(KeyScope.READ), SLOT])
def candidates(request: Request, job_id: JobId, session: ReadSession) -> Response:
    """All candidates of a job."""
    kernel = JobRepository(session).get(job_id, with_spec=True).spec.kernel.text
    views = {view.id: view for view in result_views.candidate_list(session, job_id).items}
    rows, best = (
        CandidateRepository(session).of_job(job_id, with_templates=True),
        TrialRepository(session).best,
    )

    def tree(parent: str | None) -> Iterator[Shown]:
        for row in (r for r in rows if (r.parent if r.parent in views else None) == parent):
            view, trial = views[row.id], best(row.id)
            chosen = None if trial is None else trial.configuration
            source = view.source
            if chosen is not None:
                source = published_source(row.template.configured(chosen), kernel)
            yield Shown(view, row, chosen, source, diff_rows(kernel, source), list(tree(row.id)))

    return page(request, "candidates.html.jinja", **heading(session, job_id), tree=list(tree(None)))
