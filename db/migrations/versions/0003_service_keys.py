"""API keys; jobs and tasks of tenants, with priorities."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("limits", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )
    with op.batch_alter_table("job") as job:
        job.add_column(_tenant())
        job.add_column(sa.Column("api_key", sa.String(length=32), nullable=True))
        job.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
        job.add_column(sa.Column("budget_usd", sa.Float(precision=53), nullable=False, server_default="0"))
        job.drop_constraint("uq_job_idempotency_key", type_="unique")
        job.create_unique_constraint("uq_job_tenant_idempotency_key", ["tenant", "idempotency_key"])
    op.create_index("ix_job_tenant_id", "job", ["tenant", "id"], unique=False)
    op.create_index("ix_job_api_key_created_at", "job", ["api_key", "created_at"], unique=False)
    with op.batch_alter_table("task") as task:
        task.add_column(_tenant())
        task.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.create_index(
        "ix_task_queue_tenant_started_at", "task", ["queue", "tenant", "started_at"], unique=False
    )


def downgrade() -> None:
    """Back. Two tenants may have used one idempotency key; only the older job keeps it."""
    op.drop_index("ix_task_queue_tenant_started_at", table_name="task")
    with op.batch_alter_table("task") as task:
        task.drop_column("priority")
        task.drop_column("tenant")
    op.drop_index("ix_job_api_key_created_at", table_name="job")
    op.drop_index("ix_job_tenant_id", table_name="job")
    op.execute(
        "UPDATE job SET idempotency_key = NULL WHERE EXISTS (SELECT 1 FROM job AS older"
        " WHERE older.idempotency_key = job.idempotency_key AND older.id < job.id)"
    )
    with op.batch_alter_table("job") as job:
        job.drop_constraint("uq_job_tenant_idempotency_key", type_="unique")
        job.create_unique_constraint("uq_job_idempotency_key", ["idempotency_key"])
        for name in ("budget_usd", "priority", "api_key", "tenant"):
            job.drop_column(name)
    op.drop_table("api_key")


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant", sa.String(length=64), nullable=False, server_default="default")
