"""A kind for each work on the user's kernel, with a result of its own; payloads and results name their kind.

Before, tasks of the kind `baseline` had three works, and each result was the one before with more in it.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

Document = dict[str, Any]

_TASKS = sa.table(
    "task",
    sa.column("id", sa.String()),
    sa.column("job_id", sa.String()),
    sa.column("number", sa.Integer()),
    sa.column("kind", sa.String()),
    sa.column("payload", sa.JSON(none_as_null=True)),
    sa.column("result", sa.JSON(none_as_null=True)),
)
_ON_THE_KERNEL = ("baseline", "check_cases", "profile")


def upgrade() -> None:
    """Forward."""
    known: Document = {}
    for row in _rows():
        known = known if known.get("job") == row.job_id else {"job": row.job_id}
        if row.kind == "baseline":
            _write(row.id, *_split(row.payload, row.result, known))
        else:
            _write(row.id, row.kind, _tagged(row.payload, row.kind), _tagged(row.result, row.kind))


def downgrade() -> None:
    """Back."""
    known: Document = {}
    for row in _rows():
        known = known if known.get("job") == row.job_id else {"job": row.job_id, "result": {}}
        if row.kind in _ON_THE_KERNEL:
            _write(row.id, "baseline", *_merged(row, known))
        else:
            _write(row.id, row.kind, _untagged(row.payload), _untagged(row.result))


def _split(payload: Document | None, result: Document | None, known: Document) -> tuple[str, Document, Any]:
    """Kind, payload and result of a task of the old kind; `known` remembers how long the lists were."""
    asked = payload or {}
    seen_cases, seen_counters = known.get("cases", 0), known.get("counted", 0)
    cases = [] if result is None else result.get("cases") or []
    counted = [] if result is None else result.get("counted") or []
    if result is not None:
        known.update(cases=len(cases), counted=len(counted))
    if asked.get("profiled"):
        kind, asked = "profile", {"candidate": asked["profiled"]}
        found: Document = {"counters": counted[-1] if len(counted) > seen_counters else None}
    elif asked.get("cases"):
        kind, asked = "check_cases", {"cases": asked["cases"]}
        found = {"cases": cases[seen_cases:]}
    else:
        kind, asked = "baseline", {}
        found = {name: value for name, value in (result or {}).items() if name != "counted"}
    return kind, {"kind": kind, **asked}, None if result is None else {"kind": kind, **found}


def _merged(row: Any, known: Document) -> tuple[Document | None, Document | None]:
    """Payload and result of a task of the old kind; `known` remembers the result so far."""
    payload, result = _untagged(row.payload) or {}, _untagged(row.result)
    asked: Document | None = None
    if row.kind == "check_cases":
        asked = {"cases": payload["cases"], "profiled": None}
    elif row.kind == "profile":
        asked = {"cases": [], "profiled": payload["candidate"]}
    if result is None:
        return asked, None
    whole = known["result"]
    if row.kind == "baseline":
        whole = {**result, "counted": []}
    elif row.kind == "check_cases":
        whole = {**whole, "cases": [*whole["cases"], *result["cases"]]}
    elif result["counters"] is not None:
        whole = {**whole, "counted": [*whole["counted"], result["counters"]]}
    known["result"] = whole
    return asked, whole


def _tagged(document: Document | None, kind: str) -> Document | None:
    return None if document is None else {"kind": kind, **document}


def _untagged(document: Document | None) -> Document | None:
    return None if document is None else {n: v for n, v in document.items() if n != "kind"}


def _rows() -> Iterator[Any]:
    connection = op.get_bind()
    ids = connection.scalars(sa.select(_TASKS.c.id).order_by(_TASKS.c.job_id, _TASKS.c.number)).all()
    for task in ids:
        yield connection.execute(sa.select(_TASKS).where(_TASKS.c.id == task)).one()


def _write(task: str, kind: str, payload: Document | None, result: Document | None) -> None:
    values = {"kind": kind, "payload": payload, "result": result}
    op.get_bind().execute(sa.update(_TASKS).where(_TASKS.c.id == task).values(values))
