"""Compilations that device workers leave to compile nodes."""

import sqlalchemy as sa
from alembic import op

from db.column_types import UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "compilation",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=140), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("kernel", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("device", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("artifact", sa.LargeBinary(), nullable=True),
        sa.Column("worker", sa.String(length=32), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_compilation")),
    )
    op.create_index("ix_compilation_queue_state", "compilation", ["queue", "state"], unique=False)
    op.create_index("ix_compilation_created_at", "compilation", ["created_at"], unique=False)
    with op.batch_alter_table("worker") as worker:
        worker.add_column(sa.Column("compile_slots", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Back; what was not compiled yet is compiled by whoever wanted it."""
    with op.batch_alter_table("worker") as worker:
        worker.drop_column("compile_slots")
    op.drop_table("compilation")
