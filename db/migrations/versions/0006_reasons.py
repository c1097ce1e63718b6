"""Why jobs ended."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("reason", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Back."""
    with op.batch_alter_table("job") as job:
        job.drop_column("reason")
