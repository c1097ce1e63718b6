"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    _job()
    _workload()
    _candidate()
    _trial()
    _task()
    _outbox()
    _agent_step()
    _agent_request()
    _api_key()
    _worker()
    _compilation()
    _lesson()
    _registry()
    _event()
    _webhook()


def downgrade() -> None:
    """Back; everything is lost."""
    for name in (
        "webhook",
        "event",
        "registry",
        "lesson",
        "compilation",
        "worker",
        "api_key",
        "agent_request",
        "agent_step",
        "outbox",
        "task",
        "trial",
        "candidate",
        "workload",
        "job",
    ):
        op.drop_table(name)


def _job() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(64), server_default="default", nullable=False),
        sa.Column("api_key", sa.String(32)),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("spec_hash", sa.String(64), nullable=False),
        sa.Column("labels", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("idempotency_key", sa.String(200)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("backend", sa.String(16), nullable=False),
        sa.Column("device_class", sa.String(120)),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("budget_rounds", sa.Integer(), nullable=False),
        sa.Column("budget_trials", sa.Integer(), nullable=False),
        sa.Column("budget_s", sa.Float(precision=53), nullable=False),
        sa.Column("budget_usd", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("trials_proposed", sa.Integer(), nullable=False),
        sa.Column("trials_done", sa.Integer(), nullable=False),
        sa.Column("trials_rejected", sa.Integer(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=False),
        sa.Column("usd_used", sa.Float(precision=53), nullable=False),
        sa.Column("speedup", sa.Float(precision=53)),
        sa.Column("reason", sa.JSON()),
        sa.Column("rung_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("waited_s", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("waiting_since", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.UniqueConstraint("tenant", "idempotency_key", name="uq_job_tenant_idempotency_key"),
    )
    op.create_index("ix_job_api_key_created_at", "job", ["api_key", "created_at"])
    op.create_index("ix_job_state", "job", ["state"])
    op.create_index("ix_job_tenant_id", "job", ["tenant", "id"])


def _workload() -> None:
    op.create_table(
        "workload",
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(1200), nullable=False),
        sa.Column("weight", sa.Float(precision=53), nullable=False),
        sa.Column("baseline_us", sa.Float(precision=53)),
        sa.Column("best_us", sa.Float(precision=53)),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_workload_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "position", name="pk_workload"),
    )


def _candidate() -> None:
    op.create_table(
        "candidate",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("parent", sa.String(32)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("template", sa.JSON(), nullable=False),
        sa.Column("declined", sa.JSON(), nullable=False),
        sa.Column("feasible", sa.Integer()),
        sa.Column("settled", sa.Integer()),
        sa.Column("exhausted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("made_by", sa.String(32), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("measured", sa.Integer(), nullable=False),
        sa.Column("best_objective", sa.Float(precision=53)),
        sa.Column("reuse_key", sa.String(64)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_candidate_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_candidate"),
        sa.UniqueConstraint("job_id", "number", name="uq_candidate_job_id_number"),
    )
    op.create_index("ix_candidate_reuse_key", "candidate", ["reuse_key"])


def _trial() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("candidate_id", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("key", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.JSON()),
        sa.Column("outcome_kind", sa.String(16)),
        sa.Column("objective", sa.Float(precision=53)),
        sa.Column("stage", sa.String(16)),
        sa.Column("reason_group", sa.String(200)),
        sa.Column("seconds", sa.Float(precision=53)),
        sa.Column("task_id", sa.String(32)),
        sa.Column("reused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name="fk_trial_candidate_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_trial_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_trial"),
        sa.UniqueConstraint("candidate_id", "key", name="uq_trial_candidate_id_key"),
        sa.UniqueConstraint("job_id", "number", name="uq_trial_job_id_number"),
    )
    op.create_index("ix_trial_candidate_id_state", "trial", ["candidate_id", "state"])


def _task() -> None:
    op.create_table(
        "task",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(64), server_default="default", nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("queue", sa.String(140), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("payload", sa.JSON()),
        sa.Column("result", sa.JSON()),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.String(32)),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.String(32)),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.Column("rung_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("waited_s", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_task_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_task"),
        sa.UniqueConstraint("job_id", "number", name="uq_task_job_id_number"),
    )
    op.create_index("ix_task_queue_tenant_started_at", "task", ["queue", "tenant", "started_at"])
    op.create_index("ix_task_state_lease_until", "task", ["state", "lease_until"])
    op.create_index("ix_task_state_queue", "task", ["state", "queue"])


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("queue", sa.String(140), nullable=False),
        sa.Column("subject", sa.String(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True)),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    op.create_index("ix_outbox_published_at_id", "outbox", ["published_at", "id"])


def _agent_step() -> None:
    op.create_table(
        "agent_step",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), server_default="", nullable=False),
        sa.Column("fallback", sa.Text(), server_default="", nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("written_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("usd", sa.Float(precision=53), nullable=False),
        sa.Column("latency_s", sa.Float(precision=53), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_agent_step_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_agent_step"),
    )
    op.create_index("ix_agent_step_job_id", "agent_step", ["job_id"])


def _agent_request() -> None:
    op.create_table(
        "agent_request",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("question", sa.JSON(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("reply", sa.Text()),
        sa.Column("answered_by", sa.String(120), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("last_refusal", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_agent_request_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_agent_request"),
        sa.UniqueConstraint("task_id", name="uq_agent_request_task_id"),
    )
    op.create_index("ix_agent_request_job_id", "agent_request", ["job_id"])
    op.create_index("ix_agent_request_state", "agent_request", ["state"])


def _api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("limits", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )


def _worker() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("queues", sa.JSON(), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("unavailable", sa.JSON(), nullable=False),
        sa.Column("device_faults", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("draining", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("compile_slots", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stopped_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_worker"),
    )
    op.create_index("ix_worker_last_seen", "worker", ["last_seen"])


def _compilation() -> None:
    op.create_table(
        "compilation",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("queue", sa.String(140), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("kernel", sa.JSON(), nullable=False),
        sa.Column("device", sa.JSON(), nullable=False),
        sa.Column("artifact", sa.LargeBinary()),
        sa.Column("worker", sa.String(32)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_compilation"),
    )
    op.create_index("ix_compilation_created_at", "compilation", ["created_at"])
    op.create_index("ix_compilation_queue_state", "compilation", ["queue", "state"])


def _lesson() -> None:
    op.create_table(
        "lesson",
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("backend", sa.String(16), nullable=False),
        sa.Column("device_class", sa.String(120), nullable=False),
        sa.Column("kernel", sa.String(64), nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("lesson", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_lesson"),
    )
    op.create_index(
        "ix_lesson_kernel_tenant_backend_created_at", "lesson", ["kernel", "tenant", "backend", "created_at"]
    )
    op.create_index(
        "ix_lesson_tenant_backend_created_at",
        "lesson",
        ["tenant", "backend", "created_at", "job_id", "sketch"],
    )


def _registry() -> None:
    op.create_table(
        "registry",
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("kernel", sa.String(64), nullable=False),
        sa.Column("device_class", sa.String(120), nullable=False),
        sa.Column("workload", sa.String(1200), nullable=False),
        sa.Column("chip", sa.String(120), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("device", sa.String(255), nullable=False),
        sa.Column("driver", sa.String(255), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer()),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("speedup", sa.Float(precision=53), nullable=False),
        sa.Column("verified_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "kernel", "device_class", "workload", name="pk_registry"),
    )
    op.create_index("ix_registry_tenant_verified_at", "registry", ["tenant", "verified_at"])


def _event() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("xact", sa.BigInteger(), server_default=_transaction(), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_event_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
    )
    op.create_index("ix_event_job_id_id", "event", ["job_id", "id"])
    op.create_index("ix_event_xact_id", "event", ["xact", "id"])


def _transaction() -> sa.TextClause:
    """The server's own number of the transaction; SQLite has none."""
    server = op.get_bind().dialect.name == "postgresql"
    return sa.text("pg_current_xact_id()::text::bigint" if server else "'0'")


def _webhook() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(32)),
        sa.Column("url", sa.String(2000), nullable=False),
        sa.Column("secret", sa.String(80), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("cursor_xact", sa.BigInteger(), nullable=False),
        sa.Column("cursor_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True)),
        sa.Column("disabled_reason", sa.Text(), nullable=False),
        sa.Column("ping", sa.Boolean(), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True)),
        sa.Column("last_attempt_at", sa.DateTime(timezone=True)),
        sa.Column("last_status", sa.Integer()),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("rung_at", sa.DateTime(timezone=True)),
        sa.Column("lease_token", sa.String(32)),
        sa.Column("leased_until", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_webhook_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
    )
    op.create_index("ix_webhook_next_attempt_at", "webhook", ["next_attempt_at"])
    op.create_index("ix_webhook_tenant_id", "webhook", ["tenant", "id"])
