"""The moment to which a job's time is counted, so that a clock that is set does not pay its budget."""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("job", sa.Column("counted_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    """Back."""
    op.drop_column("job", "counted_at")
