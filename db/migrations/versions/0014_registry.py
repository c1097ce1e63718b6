"""What serves each shape of a kernel, for programs that ask at start-up."""

import sqlalchemy as sa
from alembic import op

from db.column_types import UtcDateTime

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "registry",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("kernel", sa.String(length=64), nullable=False),
        sa.Column("device_class", sa.String(length=120), nullable=False),
        sa.Column("workload", sa.String(length=1200), nullable=False),
        sa.Column("chip", sa.String(length=120), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("device", sa.String(length=255), nullable=False),
        sa.Column("driver", sa.String(length=255), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("configuration", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("speedup", sa.Float(precision=53), nullable=False),
        sa.Column("verified_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "kernel", "device_class", "workload", name=op.f("pk_registry")),
    )
    op.create_index("ix_registry_tenant_verified_at", "registry", ["tenant", "verified_at"], unique=False)


def downgrade() -> None:
    """Back; what serves shapes is lost."""
    op.drop_table("registry")
