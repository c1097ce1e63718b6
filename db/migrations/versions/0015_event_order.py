"""The transaction of every event, so that a stream of events misses none; see `db.event_cursor`."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. Events that are there keep the order of their ids."""
    op.add_column("event", sa.Column("xact", sa.BigInteger(), nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        # The server fills it in, so that programs of the version before may still write events.
        op.execute("ALTER TABLE event ALTER COLUMN xact SET DEFAULT pg_current_xact_id()::text::bigint")
    op.create_index("ix_event_xact_id", "event", ["xact", "id"], unique=False)


def downgrade() -> None:
    """Back."""
    op.drop_index("ix_event_xact_id", table_name="event")
    op.drop_column("event", "xact")
