"""A new job: a pasted source becomes a job file, what is wrong with it is said, and it is submitted."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from api.pages.rendering import page, page_router
from api.pages.sign_in import read_form
from api.requests.auth import Caller, CurrentCaller, allow
from api.requests.limits import MAX_BODY_BYTES
from api.routes import jobs
from api.routes.dependencies import SLOT, CurrentNotifier, CurrentSettings, FleetDatabase, ReadSession
from api.routes.service_checks import all_findings
from db.api_keys import KeyScope
from db.engine import Database
from db.queue.broker import Notifier
from db.repositories.jobs import JobRepository
from warpsmith.domain.device import Backend, written_backends
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.http_models import NO_NUL
from warpsmith.job_checks import job_text
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob
from warpsmith.job_files.yaml_data import yaml_of
from warpsmith.settings import Settings

router = page_router()
Check = Callable[[Job], list[Finding]]
_READING = threading.Semaphore(2)
"""Sources are read by this process, which serves others meanwhile."""


@dataclass(frozen=True)
class JobDraft:
    """Fields of the form for a new job."""

    source: str = ""
    backend: str = ""
    entry: str = ""
    job: str = ""
    """The job file, as YAML."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "JobDraft":
        """The fields that a browser sent, with the line ends of a file."""
        names = ("source", "backend", "entry", "job")
        return cls(*(fields.get(name, "").replace("\r\n", "\n") for name in names))


@dataclass(frozen=True)
class Said:
    """Answer to a draft: findings on its job file and on its source."""

    findings: list[Finding] = field(default_factory=list)
    about_source: str = ""
    """Problem of the source; empty without one."""
    valid: bool = False


@router.get("/new", dependencies=[*allow(KeyScope.READ), SLOT])
def new(
    request: Request,
    session: ReadSession,
    origin: Annotated[str, Query(alias="from", max_length=64, pattern=NO_NUL)] = "",
) -> Response:
    """The empty form, or that of an earlier job, to be changed."""
    draft = JobDraft()
    if origin:
        job = JobRepository(session).get(origin, with_spec=True).spec
        draft = _of_job(job)
    return _form(request, draft, Said())


@router.post("/new", dependencies=allow(KeyScope.SUBMIT))
async def change(
    request: Request,
    caller: CurrentCaller,
    settings: CurrentSettings,
    database: FleetDatabase,
    notifier: CurrentNotifier,
) -> Response:
    """Fill the job from the source, say what is wrong with it, or submit it, as the pressed button says."""
    fields = await read_form(request, MAX_BODY_BYTES)
    draft = JobDraft.of(fields)
    check = partial(all_findings, settings=settings, database=database)
    match fields.get("do"):
        case "init":
            return await run_in_threadpool(_init, request, draft, check)
        case "submit":
            return await run_in_threadpool(_submit, request, draft, caller, settings, database, notifier)
        case _:
            return await run_in_threadpool(_validate, request, draft, check)


def _init(request: Request, draft: JobDraft, check: Check) -> Response:
    try:
        with _READING:
            text = job_text.draft(draft.source, _language(draft), draft.entry.strip())
    except InvalidInput as exc:
        about = f"{exc.field}: {exc.message}" if exc.field else exc.message
        return _form(request, draft, Said(about_source=about), 422)
    filled = JobDraft(draft.source, draft.backend, draft.entry, text)
    return _form(request, filled, _read(filled, check)[1])


def _validate(request: Request, draft: JobDraft, check: Check) -> Response:
    said = _read(draft, check)[1]
    return _form(request, draft, said, 200 if said.valid else 422)


def _submit(
    request: Request,
    draft: JobDraft,
    caller: Caller,
    settings: Settings,
    database: Database,
    notifier: Notifier,
) -> Response:
    job, said = _read(draft, partial(all_findings, settings=settings, database=database))
    if job is None:
        return _form(request, draft, said, 422)
    try:
        status = jobs.store(job, None, 0, caller, settings, database, notifier)
    except InvalidInput as exc:
        return _form(request, draft, Said([Finding(exc.field, exc.message)]), 422)
    return RedirectResponse(f"/jobs/{status.id}", 303)


def _read(draft: JobDraft, check: Check) -> tuple[Job | None, Said]:
    try:
        with _READING:
            job, warnings = job_text.checked(draft.job, draft.source, check)
    except InvalidJob as exc:
        return None, Said(list(exc.findings))
    except InvalidInput as exc:
        return None, Said([Finding(exc.field, exc.message)])
    return job, Said(warnings, valid=True)


def _of_job(job: Job) -> JobDraft:
    """A job as a draft; a source of one file stands beside the job file, as it would on a disk."""
    data = job.model_dump(mode="json", exclude_defaults=True)
    if "reference" in data:
        data["reference"] = {"kind": job.reference.kind, **data["reference"]}
    backend, source = job.kernel.backend, ""
    if backend in _languages() and isinstance(data["kernel"].get("source"), str):
        source = data["kernel"].pop("source")
        data["kernel"] = {
            "backend": backend.value,
            "source_file": f"kernel{backend.language.ending}",
            **data["kernel"],
        }
    text = yaml_of(data, allow_unicode=True, width=110)
    return JobDraft(source, backend.value, job.kernel.entry, text)


def _languages() -> list[Backend]:
    return [backend for backend in written_backends() if backend.language.is_c_text]


def _language(draft: JobDraft) -> Backend:
    if draft.backend in [language.value for language in _languages()]:
        return Backend(draft.backend)
    opencl = any(word in draft.source for word in ("__kernel", "get_global_id", "get_group_id"))
    return Backend.OPENCL if opencl else Backend.CUDA


def _form(request: Request, draft: JobDraft, said: Said, status_code: int = 200) -> Response:
    lines = draft.job.splitlines()
    return page(
        request,
        "new.html.jinja",
        status_code=status_code,
        draft=draft,
        said=said,
        languages=[language.value for language in _languages()],
        line_of=lambda number: lines[number - 1].strip() if number and number <= len(lines) else "",
    )
