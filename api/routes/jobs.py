"""Routes of jobs."""

from typing import Annotated

from fastapi import APIRouter, Body, Header, Query, Response

from api.live import news
from api.live.shared_polls import poll_of
from api.requests.auth import Caller, CurrentCaller, allow
from api.requests.posted import Posted
from api.requests.problems import Conflict, responses, told
from api.requests.query_names import JobsAskedFor
from api.routes.admission import admit, admit_caller
from api.routes.dependencies import (
    CurrentBroadcaster,
    CurrentDatabase,
    CurrentNotifier,
    CurrentPolls,
    CurrentSettings,
    FleetDatabase,
    JobId,
    ReadSession,
)
from api.routes.example_job import EXAMPLES
from api.routes.service_checks import all_findings, check_job, devices_for
from db.api_keys import KeyScope
from db.engine import Database
from db.queue.broker import Notifier, relay
from db.repositories.jobs import JobRepository
from db.views import result_views
from db.views.job_status import job_status
from db.views.unserved_jobs import unserved
from warpsmith.domain.jobs.job import Job
from warpsmith.http_models import (
    NO_NUL,
    CandidateList,
    EventPage,
    JobCheck,
    JobPage,
    JobResult,
    JobStatus,
    TrialPage,
)
from warpsmith.job_files.jobfile import job_or_findings
from warpsmith.settings import Settings
from warpsmith.system.tracing import job_span

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
polled = APIRouter(prefix="/v1/jobs", tags=["jobs"])
"""Routes that clients poll; they wait for no slot, since they hold no connection while waiting."""

Wait = Annotated[
    float, Query(ge=0, le=news.LONGEST_WAIT_S, description="Seconds to wait for news; 0: answer at once.")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        min_length=1,
        description="With the same key and the same body again, the same job comes back.",
    ),
]


@router.post(
    "", status_code=202, dependencies=allow(KeyScope.SUBMIT), responses=responses(400, 413, 415, 422)
)
def submit(
    posted: Annotated[Posted[Job], Body(openapi_examples=EXAMPLES)],
    settings: CurrentSettings,
    caller: CurrentCaller,
    database: FleetDatabase,
    notifier: CurrentNotifier,
    response: Response,
    priority: Annotated[
        int, Query(ge=-10, le=10, description="Among the jobs of your tenant; higher goes first.")
    ] = 0,
    check: Annotated[
        bool, Query(description="False: do not read the sources, for one that the reader gets wrong.")
    ] = True,
    idempotency_key: Key = None,
) -> JobStatus:
    """Submit a tuning job. It is stored before the response is sent; poll its status at `Location`."""
    with database.read() as session:
        if not JobRepository(session).stored(caller.tenant, idempotency_key):
            admit_caller(session, caller, settings)
    status = store(
        posted.read(), idempotency_key, priority, caller, settings, database, notifier, reads=check
    )
    response.headers.update({"Location": f"/v1/jobs/{status.id}"} | poll_of(status).headers())
    return status


@router.post("/check", dependencies=allow(KeyScope.SUBMIT), responses=responses(400, 413, 415, 422))
def check_only(
    posted: Annotated[Posted[Job], Body(openapi_examples=EXAMPLES)],
    settings: CurrentSettings,
    database: FleetDatabase,
) -> JobCheck:
    """Check a job without storing, compiling or running it."""
    found = job_or_findings(posted.data) if isinstance(posted.data, dict) else posted.read()
    if isinstance(found, Job):
        found = all_findings(found, settings, database)
    return JobCheck(valid=not any(f.is_error for f in found), findings=told(found))


def store(
    job: Job,
    idempotency_key: str | None,
    priority: int,
    caller: Caller,
    settings: Settings,
    database: Database,
    notifier: Notifier,
    *,
    reads: bool = True,
) -> JobStatus:
    """Store a job and publish its first message; its status.

    Raises:
        InvalidJob: the fields that this service does not accept.
        TooMany: the key has used up its budget, or the service its number of open jobs.
    """
    with database.read() as session:
        again = JobRepository(session).stored(caller.tenant, idempotency_key)
    if not again:
        check_job(job, settings, devices_for(database, job), reads=reads)
    with database.write() as session:
        jobs = JobRepository(session)
        if not jobs.stored(caller.tenant, idempotency_key):
            admit(session, caller, job, settings)
        row, new = jobs.create(
            job, idempotency_key, tenant=caller.tenant, api_key=caller.key, priority=priority
        )
        nobody = unserved(session, row, settings.unserved_limit_s) if new else None
        # A worker of this machine itself may be about to start.
        if nobody is not None and (nobody.lacking or nobody.limit_s):
            jobs.set_detail(row.id, nobody.words(begun=False))
        status = job_status(session, row.id)
    with job_span("submit", row.id):
        relay(database, notifier)
    return status


@router.get("", dependencies=allow(KeyScope.READ), responses=responses(422))
def list_jobs(
    session: ReadSession,
    only: JobsAskedFor,
    after: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="`next` of the last page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobPage:
    """Jobs of your tenant, newest first."""
    return result_views.job_page(session, after, limit, only)


@polled.get(
    "/{job_id}",
    response_model=JobStatus,
    dependencies=allow(KeyScope.READ),
    responses=responses(404, 422) | {304: {"description": "Nothing but the time left has changed."}},
)
async def status(
    job_id: JobId,
    database: CurrentDatabase,
    polls: CurrentPolls,
    broadcaster: CurrentBroadcaster,
    wait: Wait = 0,
    if_none_match: Annotated[
        str | None,
        Header(
            max_length=1000,
            description="`ETag` of the last response; if nothing has changed, the response is 304.",
        ),
    ] = None,
) -> Response:
    """Status of a job: state, round, trials done, best so far, time left.

    With `wait` the response comes when the status is another than that of `If-None-Match`, or, without one,
    than the present one; after that time at the latest.
    `Retry-After` says when to ask again; the response for a job that has ended lacks it.
    """
    found = await polls.status(database, job_id)
    if wait > 0 and found.retry_after_s is not None:
        found = await news.changed_status(broadcaster, database, job_id, found, if_none_match, wait)
    if found.is_known(if_none_match):
        return Response(status_code=304, headers=found.headers())
    return Response(found.body, media_type="application/json", headers=found.headers())


@router.get("/{job_id}/definition", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def definition(job_id: JobId, session: ReadSession) -> Job:
    """The job as it was submitted, with defaults filled in."""
    return JobRepository(session).get(job_id, with_spec=True).spec


@router.get("/{job_id}/trials", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def trials(
    job_id: JobId,
    session: ReadSession,
    after: Annotated[int | None, Query(ge=-1, le=2**31 - 1, description="`next` of the last page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> TrialPage:
    """Every configuration that was tried, with its outcome and, if rejected, the reason."""
    return result_views.trial_page(session, job_id, after, limit)


@polled.get("/{job_id}/events", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
async def events(
    job_id: JobId,
    database: CurrentDatabase,
    broadcaster: CurrentBroadcaster,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Id of the last event that arrived.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait: Wait = 0,
) -> EventPage:
    """Events of a job, oldest first: its states, and the outcomes of its tasks.

    With `wait` the response comes when there are some, or the job has ended; after that time at the latest.
    """
    return await news.event_page(broadcaster, database, job_id, after, limit, wait)


@router.get("/{job_id}/candidates", dependencies=allow(KeyScope.READ), responses=responses(404, 422))
def candidates(job_id: JobId, session: ReadSession) -> CandidateList:
    """The templates that were searched, with the rules that made them."""
    return result_views.candidate_list(session, job_id)


@router.get("/{job_id}/result", dependencies=allow(KeyScope.READ), responses=responses(404, 409, 422))
def result(job_id: JobId, session: ReadSession) -> JobResult:
    """The evidence: verified speed-ups, the dispatch table with tuned sources, all rejections."""
    found = result_views.job_result(session, job_id)
    if found is None:
        raise Conflict(f"job {job_id} has not ended; poll /v1/jobs/{job_id} until its state is terminal")
    return found


@router.post("/{job_id}/cancel", dependencies=allow(KeyScope.SUBMIT), responses=responses(404, 422))
def cancel(job_id: JobId, database: CurrentDatabase) -> JobStatus:
    """Cancel a job. A job that has ended is left unchanged."""
    with database.write() as session:
        JobRepository(session).cancel(job_id)
        return job_status(session, job_id)
