"""The tables. Names are singular, so that Optuna's tables can stand in the same database."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    FetchedValue,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from db.api_keys import KeyLimits
from db.column_types import ModelJson, UtcDateTime, words
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.reason import Reason
from warpsmith.domain.state import (
    CandidateState,
    CompilationState,
    JobState,
    TaskKind,
    TaskState,
    TrialState,
)
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.domain.templates.outcome import Outcome, OutcomeKind
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.tuning.lessons.lesson import Lesson
from warpsmith.tuning.tasks import Payload, Result

Id = String(32)
Tenant = String(64)
DEFAULT_TENANT = "default"
"""Tenant of jobs submitted without a key."""


class Base(DeclarativeBase):
    """Base of all tables that Alembic manages."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class JobRow(Base):
    """A tuning request and its state. Counters are updated by the transactions that finish trials."""

    __tablename__ = "job"
    __table_args__ = (
        UniqueConstraint("tenant", "idempotency_key"),
        Index("ix_job_tenant_id", "tenant", "id"),
        Index("ix_job_api_key_created_at", "api_key", "created_at"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    tenant: Mapped[str] = mapped_column(Tenant, default=DEFAULT_TENANT, server_default=DEFAULT_TENANT)
    api_key: Mapped[str | None] = mapped_column(Id)
    """Id of the key that submitted it; None if no key was required."""
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    """Priority among the jobs of its tenant; higher goes first."""
    name: Mapped[str] = mapped_column(String(120))
    spec: Mapped[Job] = mapped_column(ModelJson("job", Job), deferred=True)
    spec_hash: Mapped[str] = mapped_column(String(64))
    labels: Mapped[dict[str, str]] = mapped_column(JSON, default=dict, server_default="{}")
    idempotency_key: Mapped[str | None] = mapped_column(String(200))
    state: Mapped[JobState] = mapped_column(words(JobState), index=True)
    detail: Mapped[str] = mapped_column(Text, default="")
    backend: Mapped[str] = mapped_column(String(16))
    device_class: Mapped[str | None] = mapped_column(String(120))
    round: Mapped[int] = mapped_column(default=0)
    budget_rounds: Mapped[int]
    budget_trials: Mapped[int]
    budget_s: Mapped[float] = mapped_column(Float(53))
    budget_usd: Mapped[float] = mapped_column(Float(53), default=0.0, server_default="0")
    trials_proposed: Mapped[int] = mapped_column(default=0)
    """Number of trial numbers given out; some may stay unused."""
    trials_done: Mapped[int] = mapped_column(default=0)
    trials_rejected: Mapped[int] = mapped_column(default=0)
    tokens_used: Mapped[int] = mapped_column(default=0)
    usd_used: Mapped[float] = mapped_column(Float(53), default=0.0)
    speedup: Mapped[float | None] = mapped_column(Float(53))
    """Verified speed-up; None before the verification."""
    reason: Mapped[Reason | None] = mapped_column(ModelJson("reason", Reason))
    """Reason for the end; None before it, and for cancelled jobs."""
    notified_at: Mapped[datetime | None] = mapped_column("rung_at", UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time at which it first had its device."""
    waited_s: Mapped[float] = mapped_column(Float(53), default=0.0, server_default="0")
    """Seconds of waiting for its device since then, and by which the clock was set, which its budget does not
    pay for."""
    counted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time up to which a worker has seen its seconds pass; see `WaitRepository.count`."""
    waiting_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Start of the present wait for its device; None while it has the device or needs none."""
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class WorkloadRow(Base):
    """Best so far on one workload of a job."""

    __tablename__ = "workload"

    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(1200))
    weight: Mapped[float] = mapped_column(Float(53))
    baseline_us: Mapped[float | None] = mapped_column(Float(53))
    best_us: Mapped[float | None] = mapped_column(Float(53))


class CandidateRow(Base):
    """A template made in a round."""

    __tablename__ = "candidate"
    __table_args__ = (UniqueConstraint("job_id", "number"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"))
    number: Mapped[int]
    round: Mapped[int]
    parent: Mapped[str | None] = mapped_column(Id)
    state: Mapped[CandidateState] = mapped_column(words(CandidateState))
    template: Mapped[Template] = mapped_column(ModelJson("template", Template), deferred=True)
    declined: Mapped[tuple[DeclinedRule, ...]] = mapped_column(
        ModelJson("declined_rules", tuple[DeclinedRule, ...])
    )
    feasible: Mapped[int | None]
    settled: Mapped[int | None]
    """Total number of trials of the candidate when its shared search had proposed them all."""
    exhausted: Mapped[bool] = mapped_column(default=False)
    """True if the searcher of its shared search has nothing more to propose."""
    made_by: Mapped[str] = mapped_column(Id)
    """The task of the agent step that made it."""
    trials: Mapped[int] = mapped_column(default=0)
    measured: Mapped[int] = mapped_column(default=0)
    best_objective: Mapped[float | None] = mapped_column(Float(53))
    reuse_key: Mapped[str | None] = mapped_column(String(64), index=True)
    """Key of candidates that share their trials."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class TrialRow(Base):
    """A configuration of a candidate, and its outcome."""

    __tablename__ = "trial"
    __table_args__ = (
        UniqueConstraint("candidate_id", "key"),
        UniqueConstraint("job_id", "number"),
        Index("ix_trial_candidate_id_state", "candidate_id", "state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"))
    candidate_id: Mapped[str] = mapped_column(Id, ForeignKey("candidate.id", ondelete="CASCADE"))
    number: Mapped[int]
    """Number within the job, in the order of proposal."""
    configuration: Mapped[Configuration] = mapped_column(ModelJson("configuration", Configuration))
    key: Mapped[str] = mapped_column(String(16))
    state: Mapped[TrialState] = mapped_column(words(TrialState))
    outcome: Mapped[Outcome | None] = mapped_column(ModelJson("outcome", Outcome))
    outcome_kind: Mapped[OutcomeKind | None] = mapped_column(String(16))
    """The kind of the outcome; None until the trial is finished."""
    objective: Mapped[float | None] = mapped_column(Float(53))
    stage: Mapped[str | None] = mapped_column(String(16))
    """Stage of a rejection."""
    reason_group: Mapped[str | None] = mapped_column(String(200))
    """Reason of a rejection with its numbers blanked, so that similar reasons count together."""
    seconds: Mapped[float | None] = mapped_column(Float(53))
    task_id: Mapped[str | None] = mapped_column(Id)
    """The slice that finished it."""
    reused: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if taken over from another job instead of being run in this one."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class TaskRow(Base):
    """A unit of work for a worker, with its lease."""

    __tablename__ = "task"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        Index("ix_task_state_lease_until", "state", "lease_until"),
        Index("ix_task_state_queue", "state", "queue"),
        Index("ix_task_queue_tenant_started_at", "queue", "tenant", "started_at"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"))
    tenant: Mapped[str] = mapped_column(Tenant, default=DEFAULT_TENANT, server_default=DEFAULT_TENANT)
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    """Priority of the job. Tenant and priority are copied here, so that claims need not read the job."""
    number: Mapped[int]
    """Order within the job."""
    kind: Mapped[TaskKind] = mapped_column(words(TaskKind))
    queue: Mapped[str] = mapped_column(String(140))
    state: Mapped[TaskState] = mapped_column(words(TaskState))
    payload: Mapped[Payload | None] = mapped_column(ModelJson("task_payload", Payload))
    result: Mapped[Result | None] = mapped_column(ModelJson("task_result", Result))
    """Result of the task; None before its end."""
    error: Mapped[str] = mapped_column(Text, default="")
    attempt: Mapped[int] = mapped_column(default=0)
    lease_token: Mapped[str | None] = mapped_column(Id)
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    worker: Mapped[str | None] = mapped_column(Id)
    history: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list)
    """Failed attempts, an entry each: at, attempt, worker, cause, detail."""
    notified_at: Mapped[datetime] = mapped_column("rung_at", UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    waited_s: Mapped[float] = mapped_column(Float(53), default=0.0, server_default="0")
    """Its part of the job's `waited_s`."""
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class OutboxRow(Base):
    """A message to publish, written in the transaction that causes it."""

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_published_at_id", "published_at", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(64))
    queue: Mapped[str] = mapped_column(String(140))
    subject: Mapped[str] = mapped_column(Id)
    """The id of a job or a task."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    attempts: Mapped[int] = mapped_column(default=0)


class AgentStepRow(Base):
    """Complete record of one call of one role, so that a job can be replayed."""

    __tablename__ = "agent_step"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"), index=True)
    task_id: Mapped[str] = mapped_column(Id)
    role: Mapped[str] = mapped_column(String(32))
    round: Mapped[int]
    provider: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(200), default="", server_default="")
    """Name of the model, or of the answerer in their own words."""
    fallback: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Reason why the rules answered in another provider's place."""
    notes: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Problems on the way, one per line."""
    calls: Mapped[int] = mapped_column(default=0, server_default="0")
    prompt: Mapped[str] = mapped_column(Text)
    reply: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    cached_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    """Tokens of prompts that the model's server had kept; `tokens` has them too."""
    written_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    """Tokens of prompts that it kept for later; `tokens` has them too."""
    usd: Mapped[float] = mapped_column(Float(53))
    latency_s: Mapped[float] = mapped_column(Float(53))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class AgentRequestRow(Base):
    """A question that waits for an external answer, and the answer."""

    __tablename__ = "agent_request"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"), index=True)
    task_id: Mapped[str] = mapped_column(Id, unique=True)
    role: Mapped[str] = mapped_column(String(32))
    round: Mapped[int]
    state: Mapped[str] = mapped_column(String(16), index=True)
    """`open`, `answered` or `expired`."""
    instructions: Mapped[str] = mapped_column(Text)
    question: Mapped[dict[str, Any]] = mapped_column(JSON)
    wanted: Mapped[dict[str, Any]] = mapped_column(JSON)
    """JSON schema of the answer."""
    reply: Mapped[str | None] = mapped_column(Text)
    answered_by: Mapped[str] = mapped_column(String(120), default="")
    refusals: Mapped[int] = mapped_column(default=0)
    """Number of refused answers."""
    last_refusal: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    deadline: Mapped[datetime] = mapped_column(UtcDateTime)
    answered_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ApiKeyRow(Base):
    """An API key's rights and limits, never the key itself."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    """The public part of the key."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the whole key, which is random enough for a fast hash."""
    name: Mapped[str] = mapped_column(String(120))
    tenant: Mapped[str] = mapped_column(Tenant)
    scopes: Mapped[tuple[str, ...]] = mapped_column(ModelJson("texts", tuple[str, ...]))
    limits: Mapped[KeyLimits] = mapped_column(ModelJson("limits", KeyLimits))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class WorkerRow(Base):
    """A worker and its capabilities."""

    __tablename__ = "worker"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    hostname: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    version: Mapped[str] = mapped_column(String(64))
    queues: Mapped[tuple[str, ...]] = mapped_column(ModelJson("texts", tuple[str, ...]))
    devices: Mapped[tuple[DeviceInfo, ...]] = mapped_column(ModelJson("devices", tuple[DeviceInfo, ...]))
    unavailable: Mapped[dict[str, str]] = mapped_column(ModelJson("reasons", dict[str, str]))
    """Back ends, and queues without a compiler, that it cannot serve, with the reason."""
    device_faults: Mapped[dict[str, str]] = mapped_column(
        ModelJson("reasons", dict[str, str]), default=dict, server_default="{}"
    )
    """Faults by `uid` of devices that were found and are no longer used."""
    draining: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if the worker was told to finish its current task, take nothing more, and stop."""
    compile_slots: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of concurrent compilations for other workers."""
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    stopped_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class CompilationRow(Base):
    """A compilation requested by a device's worker, and the binary; deleted soon."""

    __tablename__ = "compilation"
    __table_args__ = (Index("ix_compilation_queue_state", "queue", "state"),)

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of everything that determines the binary."""
    queue: Mapped[str] = mapped_column(String(140))
    state: Mapped[CompilationState] = mapped_column(words(CompilationState))
    kernel: Mapped[ConfiguredKernel] = mapped_column(ModelJson("configured", ConfiguredKernel))
    device: Mapped[DeviceInfo] = mapped_column(ModelJson("device", DeviceInfo))
    artifact: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    worker: Mapped[str | None] = mapped_column(Id)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class LessonRow(Base):
    """Lesson of a finished job: its kernel, attempts and winners. It outlives the job."""

    __tablename__ = "lesson"
    __table_args__ = (
        # It holds all that a look through thousands of lessons reads, since a lesson itself is long.
        Index("ix_lesson_tenant_backend_created_at", "tenant", "backend", "created_at", "job_id", "sketch"),
        Index("ix_lesson_kernel_tenant_backend_created_at", "kernel", "tenant", "backend", "created_at"),
    )

    job_id: Mapped[str] = mapped_column(Id, primary_key=True)
    tenant: Mapped[str] = mapped_column(Tenant)
    backend: Mapped[str] = mapped_column(String(16))
    device_class: Mapped[str] = mapped_column(String(120))
    kernel: Mapped[str] = mapped_column(String(64))
    """Fingerprint of the user's kernel."""
    sketch: Mapped[bytes] = mapped_column(LargeBinary)
    """Sketch of its code, 16-bit little-endian numbers."""
    lesson: Mapped[Lesson] = mapped_column(ModelJson("lesson", Lesson), deferred=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class RegistryRow(Base):
    """Verified configuration for a workload of a kernel on a device class. It outlives the job."""

    __tablename__ = "registry"
    __table_args__ = (Index("ix_registry_tenant_verified_at", "tenant", "verified_at"),)

    tenant: Mapped[str] = mapped_column(Tenant, primary_key=True)
    kernel: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Fingerprint of the user's kernel."""
    device_class: Mapped[str] = mapped_column(String(120), primary_key=True)
    workload: Mapped[str] = mapped_column(String(1200), primary_key=True)
    chip: Mapped[str] = mapped_column(String(120))
    """Its device class without the driver."""
    name: Mapped[str] = mapped_column(String(200))
    """The job's."""
    device: Mapped[str] = mapped_column(String(255))
    driver: Mapped[str] = mapped_column(String(255))
    job_id: Mapped[str] = mapped_column(Id)
    attempt: Mapped[int | None]
    """Index of the candidate in the job's lesson; None: the user's kernel."""
    configuration: Mapped[Configuration] = mapped_column(ModelJson("configuration", Configuration))
    speedup: Mapped[float] = mapped_column(Float(53))
    """Low end of the verified interval."""
    verified_at: Mapped[datetime] = mapped_column(UtcDateTime)


class DeletedCountRow(Base):
    """Share of deleted jobs in a counter of the metrics."""

    __tablename__ = "deleted_count"

    name: Mapped[str] = mapped_column(String(80), primary_key=True)
    labels: Mapped[str] = mapped_column(String(400), primary_key=True)
    """JSON, sorted by name."""
    value: Mapped[float] = mapped_column(Float(53))


class EventRow(Base):
    """Events of a job, in order; never changed."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_job_id_id", "job_id", "id"), Index("ix_event_xact_id", "xact", "id"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    xact: Mapped[int] = mapped_column(BigInteger, server_default=FetchedValue())
    """Number of the transaction that wrote it, by the server; 0 on SQLite. See `db.event_cursor`."""
    job_id: Mapped[str] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    kind: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)


class WebhookRow(Base):
    """An address that gets a tenant's events, and the place of the last one that it took."""

    __tablename__ = "webhook"
    __table_args__ = (Index("ix_webhook_tenant_id", "tenant", "id"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    tenant: Mapped[str] = mapped_column(Tenant)
    job_id: Mapped[str | None] = mapped_column(Id, ForeignKey("job.id", ondelete="CASCADE"))
    """Only events of this job; None: of all."""
    url: Mapped[str] = mapped_column(String(2000))
    secret: Mapped[str] = mapped_column(String(80))
    """Key of its signatures, which is needed as it is."""
    kinds: Mapped[tuple[str, ...]] = mapped_column(ModelJson("texts", tuple[str, ...]))
    """Kinds of events; empty: all."""
    cursor_xact: Mapped[int] = mapped_column(BigInteger)
    cursor_id: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    disabled_reason: Mapped[str] = mapped_column(Text, default="")
    ping: Mapped[bool] = mapped_column(default=False)
    """True while a ping waits to be sent."""
    next_attempt_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    failures: Mapped[int] = mapped_column(default=0)
    """Attempts in a row that failed, since `failing_since`."""
    failing_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_attempt_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_status: Mapped[int | None]
    last_error: Mapped[str] = mapped_column(Text, default="")
    notified_at: Mapped[datetime | None] = mapped_column("rung_at", UtcDateTime)
    """Time of the last message for it that nobody has answered yet."""
    lease_token: Mapped[str | None] = mapped_column(Id)
    leased_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
