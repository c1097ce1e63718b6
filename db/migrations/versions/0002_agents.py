"""Requests to agents outside; what agent steps cost and why the rules stepped in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    with op.batch_alter_table("agent_step") as step:
        step.add_column(sa.Column("model", sa.String(length=200), nullable=False, server_default=""))
        step.add_column(sa.Column("fallback", sa.Text(), nullable=False, server_default=""))
        step.add_column(sa.Column("notes", sa.Text(), nullable=False, server_default=""))
        step.add_column(sa.Column("calls", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "agent_request",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("question", sa.JSON(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.String(length=120), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("last_refusal", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_agent_request_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_request")),
        sa.UniqueConstraint("task_id", name=op.f("uq_agent_request_task_id")),
    )
    op.create_index(op.f("ix_agent_request_job_id"), "agent_request", ["job_id"], unique=False)
    op.create_index(op.f("ix_agent_request_state"), "agent_request", ["state"], unique=False)


def downgrade() -> None:
    """Back."""
    op.drop_index(op.f("ix_agent_request_state"), table_name="agent_request")
    op.drop_index(op.f("ix_agent_request_job_id"), table_name="agent_request")
    op.drop_table("agent_request")
    with op.batch_alter_table("agent_step") as step:
        for name in ("calls", "notes", "fallback", "model"):
            step.drop_column(name)
