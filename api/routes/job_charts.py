"""Routes of what the charts of a job show."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.requests.auth import allow
from api.requests.problems import Conflict, responses
from api.routes.dependencies import JobId, ReadSession
from db.api_keys import KeyScope
from db.views.job_facts import job_facts
from db.views.result_views import trial_view
from db.views.stage_seconds import stage_seconds
from db.views.trial_points import trial_points
from warpsmith.chart_models import JobSeconds, TrialPoints
from warpsmith.http_models import TrialView
from warpsmith.tuning.analysis.search_facts import Facts

LONGEST_S = 1e9
"""Seconds that no job lasts."""

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get(
    "/{job_id}/points",
    response_model=TrialPoints,
    dependencies=allow(KeyScope.READ),
    responses=responses(404, 422),
)
def points(
    job_id: JobId,
    session: ReadSession,
    since: Annotated[
        float, Query(ge=0, le=LONGEST_S, allow_inf_nan=False, description="`next` of an earlier response.")
    ] = 0.0,
) -> Response:
    """Finished trials as columns of few figures: when, gain, outcome. Fast for 10,000 of them.

    With `since`, only those that ended in that second of the job or later. Some come again: join by number.
    """
    # Written at once: FastAPI would go through all values in Python.
    return Response(trial_points(session, job_id, since).model_dump_json(), media_type="application/json")


@router.get("/{job_id}/trials/{number}", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def trial(
    job_id: JobId,
    session: ReadSession,
    number: Annotated[int, Path(ge=0, le=2**31 - 1, description="Number of the trial within the job.")],
) -> TrialView:
    """A trial: its configuration, and its timings or the reason of its rejection."""
    return trial_view(session, job_id, number)


@router.get("/{job_id}/seconds", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def seconds(job_id: JobId, session: ReadSession) -> JobSeconds:
    """Time of the job by stage and round; so far, if it runs."""
    return stage_seconds(session, job_id)


@router.get("/{job_id}/facts", dependencies=allow(KeyScope.READ), responses=responses(404, 409, 422))
def facts(job_id: JobId, session: ReadSession) -> Facts:
    """Bounds of the kernel and importance of its parameters; so far, if the job runs."""
    found = job_facts(session, job_id)
    if found is None:
        raise Conflict(f"job {job_id} has no baseline yet; its state at /v1/jobs/{job_id} says when it has")
    return found
