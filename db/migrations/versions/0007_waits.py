"""Time that a job waits for its device, which its budget does not pay for."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("waited_s", sa.Float(precision=53), nullable=False, server_default="0"))
        job.add_column(sa.Column("waiting_since", sa.DateTime(timezone=True), nullable=True))
    with op.batch_alter_table("task") as task:
        task.add_column(sa.Column("waited_s", sa.Float(precision=53), nullable=False, server_default="0"))


def downgrade() -> None:
    """Back; the budget pays for what was waited."""
    with op.batch_alter_table("task") as task:
        task.drop_column("waited_s")
    with op.batch_alter_table("job") as job:
        job.drop_column("waiting_since")
        job.drop_column("waited_s")
