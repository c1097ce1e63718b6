"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    _job()
    _outbox()
    _worker()
    _agent_step()
    _candidate()
    _event()
    _task()
    _workload()
    _trial()


def downgrade() -> None:
    """Back."""
    op.drop_index("ix_trial_candidate_id_state", table_name="trial")
    op.drop_table("trial")
    op.drop_table("workload")
    op.drop_index("ix_task_state_queue", table_name="task")
    op.drop_index("ix_task_state_lease_until", table_name="task")
    op.drop_table("task")
    op.drop_index("ix_event_job_id_id", table_name="event")
    op.drop_table("event")
    op.drop_table("candidate")
    op.drop_index(op.f("ix_agent_step_job_id"), table_name="agent_step")
    op.drop_table("agent_step")
    op.drop_index(op.f("ix_worker_last_seen"), table_name="worker")
    op.drop_table("worker")
    op.drop_index("ix_outbox_published_at_id", table_name="outbox")
    op.drop_table("outbox")
    op.drop_index(op.f("ix_job_state"), table_name="job")
    op.drop_table("job")


def _job() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("spec_hash", sa.String(length=64), nullable=False),
        sa.Column("idempotency_key", sa.String(length=200), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("device_class", sa.String(length=120), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("budget_rounds", sa.Integer(), nullable=False),
        sa.Column("budget_trials", sa.Integer(), nullable=False),
        sa.Column("budget_s", sa.Float(precision=53), nullable=False),
        sa.Column("trials_proposed", sa.Integer(), nullable=False),
        sa.Column("trials_done", sa.Integer(), nullable=False),
        sa.Column("trials_rejected", sa.Integer(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=False),
        sa.Column("usd_used", sa.Float(precision=53), nullable=False),
        sa.Column("speedup", sa.Float(precision=53), nullable=True),
        sa.Column("rung_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_job_idempotency_key")),
    )
    op.create_index(op.f("ix_job_state"), "job", ["state"], unique=False)


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=140), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index("ix_outbox_published_at_id", "outbox", ["published_at", "id"], unique=False)


def _worker() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("queues", sa.JSON(), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("unavailable", sa.JSON(), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    op.create_index(op.f("ix_worker_last_seen"), "worker", ["last_seen"], unique=False)


def _agent_step() -> None:
    op.create_table(
        "agent_step",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Float(precision=53), nullable=False),
        sa.Column("latency_s", sa.Float(precision=53), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_agent_step_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_step")),
    )
    op.create_index(op.f("ix_agent_step_job_id"), "agent_step", ["job_id"], unique=False)


def _candidate() -> None:
    op.create_table(
        "candidate",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("parent", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("template", sa.JSON(), nullable=False),
        sa.Column("declined", sa.JSON(), nullable=False),
        sa.Column("feasible", sa.Integer(), nullable=True),
        sa.Column("made_by", sa.String(length=32), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("measured", sa.Integer(), nullable=False),
        sa.Column("best_objective", sa.Float(precision=53), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_candidate_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_candidate")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_candidate_job_id_number")),
    )


def _event() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_event_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index("ix_event_job_id_id", "event", ["job_id", "id"], unique=False)


def _task() -> None:
    op.create_table(
        "task",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("queue", sa.String(length=140), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=32), nullable=True),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.Column("rung_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_task_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_task_job_id_number")),
    )
    op.create_index("ix_task_state_lease_until", "task", ["state", "lease_until"], unique=False)
    op.create_index("ix_task_state_queue", "task", ["state", "queue"], unique=False)


def _workload() -> None:
    op.create_table(
        "workload",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=1200), nullable=False),
        sa.Column("weight", sa.Float(precision=53), nullable=False),
        sa.Column("baseline_us", sa.Float(precision=53), nullable=True),
        sa.Column("best_us", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_workload_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "position", name=op.f("pk_workload")),
    )


def _trial() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("candidate_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("key", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("objective", sa.Float(precision=53), nullable=True),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("reason_group", sa.String(length=200), nullable=True),
        sa.Column("seconds", sa.Float(precision=53), nullable=True),
        sa.Column("task_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["candidate.id"], name=op.f("fk_trial_candidate_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_trial_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
        sa.UniqueConstraint("candidate_id", "key", name=op.f("uq_trial_candidate_id_key")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_trial_job_id_number")),
    )
    op.create_index("ix_trial_candidate_id_state", "trial", ["candidate_id", "state"], unique=False)
