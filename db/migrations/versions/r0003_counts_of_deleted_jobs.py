"""Shares of deleted jobs in the counters of the metrics, so that none falls."""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "deleted_count",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("labels", sa.String(400), nullable=False),
        sa.Column("value", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name=op.f("pk_deleted_count")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("deleted_count")
