"""The calls of the API: each request once, for both clients."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from warpsmith.chart_models import JobSeconds, TrialPoints
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.client.call import Call, Pages
from warpsmith.extensions.clients.client.request import Request
from warpsmith.extensions.clients.python.kernel_given import GivenJob, given_job
from warpsmith.http_models import (
    AgentReply,
    AgentReplyTaken,
    AgentRequestPage,
    AgentStepList,
    CandidateList,
    EventPage,
    Health,
    JobCheck,
    JobLesson,
    JobLessonPage,
    JobPage,
    JobResult,
    JobStatus,
    LessonKept,
    RegistryList,
    TrialPage,
    TrialView,
    WorkerList,
)
from warpsmith.tuning.analysis.search_facts import Facts
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.webhooks.models import Kind, NewWebhook, WebhookCreated, WebhookList, WebhookView


class ClientMethods:
    """Methods of a client, one for each request of the API.

    A list in pages is an iterator; `jobs` gives one page.
    """

    @Call
    def submit(
        self, job: GivenJob, key: str | None = None, priority: int = 0, *, check: bool = True
    ) -> Request[JobStatus]:
        """Submit a job.

        Args:
            job: a `Job`, a mapping in the job form, or the path of a job file.
            key: idempotency key; the same key returns the same job.
            priority: from -10 to 10; among the jobs of the tenant, the higher goes first.
            check: have the service read the sources before it accepts the job.
        """
        headers = {"Idempotency-Key": key} if key else {}
        params = [("priority", str(priority))] if priority else []
        params += [] if check else [("check", "false")]
        read = JobStatus.model_validate_json
        return Request(read, "POST", "/v1/jobs", given_job(job).model_dump_json(), headers, params)

    @Call
    def check(self, job: GivenJob) -> Request[JobCheck]:
        """Say what is wrong with a job, without storing or running it."""
        body = given_job(job).model_dump_json()
        return Request(JobCheck.model_validate_json, "POST", "/v1/jobs/check", body)

    @Call
    def status(self, job_id: str) -> Request[JobStatus]:
        """Status of a job."""
        return Request(JobStatus.model_validate_json, "GET", job_path(job_id))

    @Call
    def definition(self, job_id: str) -> Request[Job]:
        """The job as it was submitted."""
        return Request(Job.model_validate_json, "GET", f"{job_path(job_id)}/definition")

    def _jobs(
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
    ) -> Request[JobPage]:
        """The jobs that match all given filters, newest first: a page (`jobs`), or every one (`all_jobs`).

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
        single = {"after": after, "name": name, "device": device, "tenant": tenant}
        times = {"created_from": created_from, "created_before": created_before}
        single |= {key: moment.isoformat() for key, moment in times.items() if moment is not None}
        params += [(key, value) for key, value in single.items() if value]
        path = "/v1/fleet/jobs" if tenant else "/v1/jobs"
        return Request(JobPage.model_validate_json, "GET", path, params=params)

    jobs = Call(_jobs)
    all_jobs = Pages(_jobs)

    @Pages
    def trials(self, job_id: str) -> Request[TrialPage]:
        """All trials of a job, in order."""
        return Request(TrialPage.model_validate_json, "GET", f"{job_path(job_id)}/trials")

    @Call
    def trial(self, job_id: str, number: int) -> Request[TrialView]:
        """Get a trial of a job."""
        return Request(TrialView.model_validate_json, "GET", f"{job_path(job_id)}/trials/{number}")

    @Call
    def points(self, job_id: str, since: float = 0.0) -> Request[TrialPoints]:
        """Finished trials of a job as columns of few figures, fast for many.

        Args:
            since: `next` of an earlier answer; trials that ended before it are left out.
        """
        params = [("since", str(since))] if since else []
        return Request(TrialPoints.model_validate_json, "GET", f"{job_path(job_id)}/points", params=params)

    @Call
    def seconds(self, job_id: str) -> Request[JobSeconds]:
        """Seconds that a job spent, by stage; so far, if it runs."""
        return Request(JobSeconds.model_validate_json, "GET", f"{job_path(job_id)}/seconds")

    @Call
    def facts(self, job_id: str) -> Request[Facts]:
        """Limits of the kernel, and the parameters that matter; so far, if the job runs.

        `InvalidInput` is raised before the baseline is measured.
        """
        return Request(Facts.model_validate_json, "GET", f"{job_path(job_id)}/facts")

    @Pages
    def events(self, job_id: str) -> Request[EventPage]:
        """Events of a job, oldest first."""
        return Request(EventPage.model_validate_json, "GET", f"{job_path(job_id)}/events")

    @Call
    def candidates(self, job_id: str) -> Request[CandidateList]:
        """All candidates of a job."""
        return Request(CandidateList.model_validate_json, "GET", f"{job_path(job_id)}/candidates")

    @Call
    def result(self, job_id: str) -> Request[JobResult]:
        """The evidence of a job that has ended, as the service gives it; `result_of` makes more of it."""
        return Request(JobResult.model_validate_json, "GET", f"{job_path(job_id)}/result")

    @Call
    def cancel(self, job_id: str, tenant: str = "") -> Request[JobStatus]:
        """Cancel a job.

        Args:
            tenant: tenant of the job, or `*` for any; needs a key of the scope `admin`.
        """
        path = f"/v1/fleet/jobs/{quote(job_id, safe='')}" if tenant else job_path(job_id)
        params = [("tenant", tenant)] if tenant else []
        return Request(JobStatus.model_validate_json, "POST", f"{path}/cancel", params=params)

    @Pages
    def agent_requests(self, job_id: str | None = None) -> Request[AgentRequestPage]:
        """Questions of agents that wait for an answer from outside, oldest first.

        Args:
            job_id: only those of this job.
        """
        params = [("job", job_id)] if job_id else []
        return Request(AgentRequestPage.model_validate_json, "GET", "/v1/agent-requests", params=params)

    @Call
    def reply(
        self, request_id: str, answer: Mapping[str, Any] | str, by: str = ""
    ) -> Request[AgentReplyTaken]:
        """Answer a question. A refused answer raises `InvalidInput` with the reason; the question stays open.

        Args:
            answer: data that fits the schema in the question's `wanted`, or a text with it: JSON alone, or
                Markdown with the source in a fenced block and the other fields in a JSON object.
            by: name of the answerer, for the record.
        """
        body = AgentReply(answer=answer if isinstance(answer, str) else dict(answer), by=by).model_dump_json()
        path = f"/v1/agent-requests/{quote(request_id, safe='')}/reply"
        return Request(AgentReplyTaken.model_validate_json, "POST", path, body)

    @Call
    def agent_steps(self, job_id: str) -> Request[AgentStepList]:
        """Questions and answers of agents, with their cost."""
        return Request(AgentStepList.model_validate_json, "GET", f"{job_path(job_id)}/agent-steps")

    @Call
    def registry(
        self, kernels: Sequence[Kernel | str] = (), device_class: str = "", workloads: Sequence[str] = ()
    ) -> Request[RegistryList]:
        """Winners that serve the shapes of kernels, as verified last: for all shapes of a model at once.

        Args:
            kernels: kernels of jobs, or their fingerprints; empty: all that the tenant ever tuned.
            device_class: as `workers` and results name it. Rows of the same device under another driver come
                too, and are stale. Empty: of every device.
            workloads: keys of workloads (`hidden=4096,tokens=512`); empty: all.
        """
        params = [("kernel", k if isinstance(k, str) else fingerprint(k)) for k in kernels]
        params += [("device_class", device_class)] if device_class else []
        params += [("workload", key) for key in workloads]
        return Request(RegistryList.model_validate_json, "GET", "/v1/registry", params=params)

    @Pages
    def lessons(self, job_id: str | None = None) -> Request[JobLessonPage]:
        """Lessons of jobs that ended, oldest first, in the form that `teach` takes.

        Args:
            job_id: only that of this job.
        """
        params = [("job", job_id)] if job_id else []
        return Request(JobLessonPage.model_validate_json, "GET", "/v1/lessons", params=params)

    @Call
    def teach(self, lesson: JobLesson) -> Request[LessonKept]:
        """Hand on what a job of another service taught. Later jobs learn from it and measure all anew."""
        return Request(LessonKept.model_validate_json, "POST", "/v1/lessons", lesson.model_dump_json())

    @Call
    def create_webhook(
        self, url: str, kinds: Sequence[Kind] = (), job_id: str | None = None
    ) -> Request[WebhookCreated]:
        """Have events sent to an address from now on; only this answer holds their secret.

        Args:
            kinds: kinds of events; empty: all.
            job_id: only events of this job. The webhook is deleted after the last one.
        """
        body = NewWebhook(url=url, kinds=tuple(kinds), job=job_id).model_dump_json()
        return Request(WebhookCreated.model_validate_json, "POST", "/v1/webhooks", body)

    @Call
    def webhooks(self) -> Request[WebhookList]:
        """The webhooks of the tenant, oldest first."""
        return Request(WebhookList.model_validate_json, "GET", "/v1/webhooks")

    @Call
    def webhook(self, webhook_id: str) -> Request[WebhookView]:
        """A webhook, and how its last attempt went."""
        return Request(WebhookView.model_validate_json, "GET", _webhook(webhook_id))

    @Call
    def delete_webhook(self, webhook_id: str) -> Request[None]:
        """Delete a webhook."""
        return Request(_nothing, "DELETE", _webhook(webhook_id))

    @Call
    def enable_webhook(self, webhook_id: str) -> Request[WebhookView]:
        """Resume a webhook that was disabled, with the event that it did not take."""
        return Request(WebhookView.model_validate_json, "POST", f"{_webhook(webhook_id)}/enable")

    @Call
    def ping_webhook(self, webhook_id: str) -> Request[WebhookView]:
        """Have a ping sent; `webhook` says how it went, once `pinging` is false."""
        return Request(WebhookView.model_validate_json, "POST", f"{_webhook(webhook_id)}/ping")

    @Call
    def workers(self) -> Request[WorkerList]:
        """Workers seen recently."""
        return Request(WorkerList.model_validate_json, "GET", "/v1/workers")

    @Call
    def health(self) -> Request[Health]:
        """Ask the API's process for its version; `ready` says whether jobs can run."""
        return Request(Health.model_validate_json, "GET", "/healthz")

    @Call
    def metrics(self) -> Request[str]:
        """The metrics of the fleet in Prometheus' text format; needs a key of the scope `admin`."""
        return Request(bytes.decode, "GET", "/metrics")


def job_path(job_id: str) -> str:
    """Path of a job's status."""
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _webhook(webhook_id: str) -> str:
    return f"/v1/webhooks/{quote(webhook_id, safe='')}"


def _nothing(_body: bytes) -> None:
    return None


def stream_path(job_id: str | None) -> str:
    """Path of the stream of a job; None: of all jobs of the tenant."""
    return "/v1/stream" if job_id is None else f"{job_path(job_id)}/stream"
