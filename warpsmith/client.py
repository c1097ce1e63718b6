"""A client of the HTTP API."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ValidationError

from warpsmith.domain.job import Job
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput, NotFound, Unavailable
from warpsmith.http_models import (
    CandidateList,
    EventPage,
    EventView,
    JobPage,
    JobResult,
    JobStatus,
    Problem,
    TrialPage,
    TrialView,
    WorkerList,
)

Answer = TypeVar("Answer", bound=BaseModel)

TIMEOUT_S = 30.0


class Client:
    """Client of one service. Raises `Unavailable` if it cannot be reached or fails, and `NotFound` and
    `InvalidInput` as the service reports them.

    Args:
        url: address of the service (`http://127.0.0.1:8765`).
        key: API key; the embedded service needs none.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx2.Client(base_url=url, timeout=TIMEOUT_S, headers=headers)
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(self, job: Job, key: str | None = None, priority: int = 0) -> JobStatus:
        """Submit a job. The same key returns the same job."""
        headers = {"Idempotency-Key": key} if key else {}
        headers["Content-Type"] = "application/json"
        params = [("priority", str(priority))] if priority else []
        body = job.model_dump_json()
        return self._call(JobStatus, "POST", "/v1/jobs", content=body, headers=headers, params=params)

    def status(self, job_id: str) -> JobStatus:
        """Status of a job."""
        return self._call(JobStatus, "GET", _job(job_id))

    def definition(self, job_id: str) -> Job:
        """The job as it was submitted."""
        return self._call(Job, "GET", f"{_job(job_id)}/definition")

    def jobs(
        self,
        after: str | None = None,
        states: Sequence[JobState] = (),
        *,
        labels: Mapping[str, str] | None = None,
        name: str = "",
        device: str = "",
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        tenant: str = "",
    ) -> JobPage:
        """One page of the jobs that match all given filters, newest first.

        Args:
            after: `next` of the last page.
            states: states, of which a job has one.
            name: part of the name, in any case.
            device: a device class.
            created_from: earliest time of submission, with its zone.
            created_before: time, with its zone, before which jobs were submitted.
            tenant: tenant, or `*` for all; needs a key of the scope `admin`.
        """
        params = [("state", state.value) for state in states]
        params += [("label", f"{key}={value}") for key, value in (labels or {}).items()]
        single = {"after": after, "name": name, "device": device}
        times = {"created_from": created_from, "created_before": created_before}
        single |= {key: moment.isoformat() for key, moment in times.items() if moment is not None}
        params += [(key, value) for key, value in single.items() if value]
        if tenant:
            return self._call(JobPage, "GET", "/v1/fleet/jobs", params=[*params, ("tenant", tenant)])
        return self._call(JobPage, "GET", "/v1/jobs", params=params)

    def trials(self, job_id: str) -> Iterator[TrialView]:
        """All trials of a job, in order."""
        after: int | None = None
        while True:
            params = [] if after is None else [("after", str(after))]
            page = self._call(TrialPage, "GET", f"{_job(job_id)}/trials", params=params)
            yield from page.items
            if page.next is None:
                return
            after = page.next

    def candidates(self, job_id: str) -> CandidateList:
        """All candidates of a job."""
        return self._call(CandidateList, "GET", f"{_job(job_id)}/candidates")

    def result(self, job_id: str) -> JobResult:
        """The evidence of a job that has ended."""
        return self._call(JobResult, "GET", f"{_job(job_id)}/result")

    def cancel(self, job_id: str, tenant: str = "") -> JobStatus:
        """Cancel a job.

        Args:
            tenant: tenant of the job, or `*` for any; needs a key of the scope `admin`.
        """
        if tenant:
            path = f"/v1/fleet/jobs/{quote(job_id, safe='')}/cancel"
            return self._call(JobStatus, "POST", path, params=[("tenant", tenant)])
        return self._call(JobStatus, "POST", f"{_job(job_id)}/cancel")

    def events(self, job_id: str) -> Iterator[EventView]:
        """Events of a job, oldest first."""
        after = 0
        while True:
            params = [("after", str(after))] if after else []
            page = self._call(EventPage, "GET", f"{_job(job_id)}/events", params=params)
            yield from page.items
            if page.next is None:
                return
            after = page.next

    def workers(self) -> WorkerList:
        """Workers seen recently."""
        return self._call(WorkerList, "GET", "/v1/workers")

    def ready(self) -> str:
        """Empty if the service is ready; else the reason why it is not."""
        try:
            reply = self._http.get("/readyz")
        except httpx2.HTTPError as exc:
            return f"{self.url} does not answer ({type(exc).__name__})"
        return "" if reply.status_code == 200 else _problem(reply).detail

    def wait(
        self, job_id: str, show: Callable[[JobStatus], None] | None = None, every_s: float = 0.5
    ) -> JobStatus:
        """Poll until the job has ended; `show` is called with every status."""
        while True:
            status = self.status(job_id)
            if show is not None:
                show(status)
            if status.state.is_terminal:
                return status
            time.sleep(every_s)

    def _call(
        self,
        answer: type[Answer],
        method: str,
        path: str,
        *,
        content: str | None = None,
        headers: dict[str, str] | None = None,
        params: Sequence[tuple[str, str]] = (),
    ) -> Answer:
        try:
            reply = self._http.request(method, path, content=content, headers=headers, params=list(params))
        except httpx2.HTTPError as exc:
            raise Unavailable(f"{self.url} does not answer: {exc}") from exc
        if reply.status_code >= 400:
            problem = _problem(reply)
            words = "; ".join(f"{e.field}: {e.message}" for e in problem.errors) or problem.detail
            if reply.status_code == 404:
                raise NotFound(words or problem.title)
            if reply.status_code == 429:
                raise Unavailable(f"{words or problem.title}; try again later")
            if reply.status_code in (401, 403):
                raise InvalidInput("API key", words or problem.title)
            if reply.status_code < 500:
                field = problem.errors[0].field if len(problem.errors) == 1 else ""
                raise InvalidInput(field, problem.errors[0].message if field else words or problem.title)
            raise Unavailable(f"{problem.title}: {words}")
        try:
            return answer.model_validate_json(reply.content)
        except ValidationError as exc:
            raise Unavailable(
                f"{self.url} does not answer as Warpsmith does: HTTP {reply.status_code}"
            ) from exc


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _problem(reply: httpx2.Response) -> Problem:
    try:
        return Problem.model_validate_json(reply.content)
    except ValidationError:
        return Problem(title=f"HTTP {reply.status_code}", status=reply.status_code, detail=reply.text[:500])
