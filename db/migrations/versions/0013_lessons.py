"""What finished jobs taught, for later jobs on the same kernel or one like it."""

import sqlalchemy as sa
from alembic import op

from db.column_types import UtcDateTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "lesson",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("device_class", sa.String(length=120), nullable=False),
        sa.Column("kernel", sa.String(length=64), nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("lesson", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_lesson")),
    )
    order = ["tenant", "backend", "created_at"]
    every = [*order, "job_id", "sketch"]
    op.create_index("ix_lesson_tenant_backend_created_at", "lesson", every, unique=False)
    op.create_index("ix_lesson_kernel_tenant_backend_created_at", "lesson", ["kernel", *order], unique=False)


def downgrade() -> None:
    """Back; what jobs taught is lost."""
    op.drop_table("lesson")
