"""That a shared search proposes nothing more: columns of the candidate, until now read out of events."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_CANDIDATES = sa.table(
    "candidate",
    sa.column("id", sa.String()),
    sa.column("settled", sa.Integer()),
    sa.column("exhausted", sa.Boolean()),
)
_EVENTS = sa.table("event", sa.column("kind", sa.String()), sa.column("data", sa.JSON()))


def upgrade() -> None:
    """Forward: what events said of searches goes to the columns."""
    with op.batch_alter_table("candidate") as candidate:
        candidate.add_column(sa.Column("settled", sa.Integer(), nullable=True))
        candidate.add_column(sa.Column("exhausted", sa.Boolean(), nullable=False, server_default=sa.false()))
    connection = op.get_bind()
    settled: dict[str, int] = {}
    exhausted = set()
    for said in connection.scalars(sa.select(_EVENTS.c.data).where(_EVENTS.c.kind == "settled")):
        trials = said.get("trials")
        if trials is None:
            exhausted.add(said["candidate"])
        else:
            settled[said["candidate"]] = max(trials, settled.get(said["candidate"], 0))
    for candidate_id in settled.keys() | exhausted:
        values = {"settled": settled.get(candidate_id), "exhausted": candidate_id in exhausted}
        connection.execute(sa.update(_CANDIDATES).where(_CANDIDATES.c.id == candidate_id).values(values))


def downgrade() -> None:
    """Back; the events are still there."""
    with op.batch_alter_table("candidate") as candidate:
        candidate.drop_column("exhausted")
        candidate.drop_column("settled")
