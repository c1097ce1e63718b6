"""Faults of devices, workers that drain, and the kind of an outcome: each in a column of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_DRAIN = "drain"
_PUT_ASIDE = "put aside: "
_WORKERS = sa.table(
    "worker",
    sa.column("id", sa.String()),
    sa.column("unavailable", sa.JSON()),
    sa.column("device_faults", sa.JSON()),
    sa.column("draining", sa.Boolean()),
)
_KIND = """
UPDATE trial SET outcome_kind = CASE
    WHEN objective IS NOT NULL THEN 'measured'
    WHEN stage IS NOT NULL THEN 'rejected'
    ELSE 'cut_short' END
WHERE state = 'finished'
"""


def upgrade() -> None:
    """Forward: what the strings said goes to the columns."""
    with op.batch_alter_table("worker") as worker:
        worker.add_column(sa.Column("device_faults", sa.JSON(), nullable=False, server_default="{}"))
        worker.add_column(sa.Column("draining", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("trial") as trial:
        trial.add_column(sa.Column("outcome_kind", sa.String(16), nullable=True))
    op.execute(_KIND)
    connection = op.get_bind()
    for row in connection.execute(sa.select(_WORKERS.c.id, _WORKERS.c.unavailable)).all():
        said = row.unavailable
        faults = {
            uid: why.removeprefix(_PUT_ASIDE) for uid, why in said.items() if why.startswith(_PUT_ASIDE)
        }
        rest = {name: why for name, why in said.items() if name not in faults and name != _DRAIN}
        values = {"unavailable": rest, "device_faults": faults, "draining": _DRAIN in said}
        connection.execute(sa.update(_WORKERS).where(_WORKERS.c.id == row.id).values(values))


def downgrade() -> None:
    """Back: the strings say it again."""
    connection = op.get_bind()
    for row in connection.execute(sa.select(_WORKERS)).all():
        faults = {uid: f"{_PUT_ASIDE}{fault}" for uid, fault in row.device_faults.items()}
        drain = {_DRAIN: "it was told to end what it has begun, and to go"} if row.draining else {}
        said = {**row.unavailable, **faults, **drain}
        connection.execute(sa.update(_WORKERS).where(_WORKERS.c.id == row.id).values(unavailable=said))
    with op.batch_alter_table("trial") as trial:
        trial.drop_column("outcome_kind")
    with op.batch_alter_table("worker") as worker:
        worker.drop_column("draining")
        worker.drop_column("device_faults")
