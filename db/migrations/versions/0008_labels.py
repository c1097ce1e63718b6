"""Labels of jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("labels", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Back; a job's definition keeps its labels."""
    with op.batch_alter_table("job") as job:
        job.drop_column("labels")
