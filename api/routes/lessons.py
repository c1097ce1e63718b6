"""Routes of what earlier jobs found: the registry that programs ask at start-up, and lessons to hand on."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from api.requests.auth import CurrentCaller, allow
from api.requests.posted import Posted
from api.requests.problems import responses
from api.routes.dependencies import CurrentDatabase, ReadSession
from db.api_keys import KeyScope
from db.repositories.memory.lessons import LessonRepository
from db.views import memory_views
from warpsmith.http_models import NO_NUL, JobLesson, JobLessonPage, LessonKept, RegistryList

router = APIRouter(prefix="/v1", tags=["memory"])

Fingerprint = Annotated[str, Query(pattern="^[0-9a-f]{64}$")]
Key = Annotated[str, Query(max_length=1200, pattern=NO_NUL)]


@router.get("/registry", dependencies=allow(KeyScope.READ), responses=responses(422))
def registry(
    session: ReadSession,
    kernel: Annotated[
        list[Fingerprint], Query(max_length=100, description="Fingerprints; none: of all kernels.")
    ] = [],  # noqa: B006  # FastAPI copies it
    device_class: Annotated[
        str | None,
        Query(max_length=120, pattern="^[a-z0-9.-]+$", description="Of this device, whatever its driver."),
    ] = None,
    workload: Annotated[list[Key], Query(max_length=200, description="Keys; none: all.")] = [],  # noqa: B006
) -> RegistryList:
    """What serves each shape of a kernel, as it was verified last."""
    return memory_views.registry_list(session, kernel, device_class, workload)


@router.get("/lessons", dependencies=allow(KeyScope.READ), responses=responses(422))
def lessons(
    session: ReadSession,
    job: Annotated[str | None, Query(max_length=64, pattern=NO_NUL, description="Of this job.")] = None,
    after: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="`next` of the last page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 20,
) -> JobLessonPage:
    """What jobs that ended taught, oldest first, to be posted to another service."""
    return memory_views.lesson_page(session, job, after, limit)


@router.post("/lessons", dependencies=allow(KeyScope.SUBMIT), responses=responses(400, 413, 415, 422))
def teach(
    posted: Annotated[Posted[JobLesson], Body()],
    caller: CurrentCaller,
    database: CurrentDatabase,
    response: Response,
) -> LessonKept:
    """Take over what a job of another service taught. Nothing of it counts as verified: jobs start from it
    and measure everything anew, and the registry leaves it out."""
    taught = posted.read()
    with database.write() as session:
        job_id, new = LessonRepository(session).take_over(taught.job, caller.tenant, taught.lesson)
    response.status_code = 201 if new else 200
    return LessonKept(job=job_id, new=new)
