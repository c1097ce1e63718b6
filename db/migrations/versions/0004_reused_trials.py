"""Trials that count for a later job of the same kernel."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    with op.batch_alter_table("candidate") as candidate:
        candidate.add_column(sa.Column("reuse_key", sa.String(length=64), nullable=True))
    op.create_index("ix_candidate_reuse_key", "candidate", ["reuse_key"], unique=False)
    with op.batch_alter_table("trial") as trial:
        trial.add_column(sa.Column("reused", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Back; trials that were taken over stay, as if they had been run."""
    with op.batch_alter_table("trial") as trial:
        trial.drop_column("reused")
    op.drop_index("ix_candidate_reuse_key", table_name="candidate")
    with op.batch_alter_table("candidate") as candidate:
        candidate.drop_column("reuse_key")
