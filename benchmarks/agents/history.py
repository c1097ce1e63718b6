"""The decisions of a series as a file for the gate, without anybody's kernels.

    python -m benchmarks.agents.history --state DIR --out FILE.db.xz [--arms template ...]

Every text of a kernel, every question and every reply is replaced by its hash, since the kernels are other
people's. What `decide` goes by is left: tasks, candidates, trials and times.
"""

import argparse
import hashlib
import json
import lzma
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

TABLES = (
    "alembic_version",
    "warpsmith_version",
    "version_info",
    "job",
    "task",
    "candidate",
    "trial",
    "agent_step",
)
HIDDEN = ("source", "reply", "prompt", "log")
"""Fields that hold somebody's text."""


def hidden(value: Any) -> Any:
    """The same data, whose texts of others are hashes."""
    if isinstance(value, list):
        return [hidden(v) for v in value]
    if not isinstance(value, dict):
        return value
    plain = {k: _hash(v) if k in HIDDEN and isinstance(v, str) and v else hidden(v) for k, v in value.items()}
    return plain | ({"files": {}} if "files" in plain else {})


def pack(database: Path, ids: list[str], out: Path) -> None:
    """Write a database that holds these jobs' decisions and nothing else, compressed."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-history-") as folder:
        copy = Path(folder) / "history.db"
        shutil.copy(database, copy)
        with closing(sqlite3.connect(copy)) as rows:
            for (table,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                _reduce(rows, table, ids)
            rows.commit()
            rows.execute("VACUUM")
        out.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def _reduce(rows: sqlite3.Connection, table: str, ids: list[str]) -> None:
    """Empty a table, or keep its rows of some jobs without texts of others."""
    columns = [row[1] for row in rows.execute(f'PRAGMA table_info("{table}")')]
    marks = ",".join("?" * len(ids))
    if table not in TABLES:
        rows.execute(f'DELETE FROM "{table}"')
        return
    of_job = {"job": "id"}.get(table, "job_id")
    if of_job in columns:
        rows.execute(f'DELETE FROM "{table}" WHERE "{of_job}" NOT IN ({marks})', ids)
    for column in columns:
        for key, value in rows.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall():
            if not isinstance(value, str) or not value:
                continue
            changed = _hash(value) if column in HIDDEN else _as_json(value)
            if changed != value:
                rows.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (changed, key))


def _as_json(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text
    return json.dumps(hidden(json.loads(text)), separators=(",", ":"))


def _hash(text: str) -> str:
    return f"// {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arms", nargs="+", default=["own", "rules", "direct", "template"])
    options = parser.parse_args()
    ended = {p.stem for p in (options.state / "results").glob("*.json")}
    known = json.loads((options.state / "jobs.json").read_text())
    ids = [id_ for name, id_ in known.items() if name in ended and name.split(".")[1] in options.arms]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pack(options.state / "data" / "warpsmith.db", ids, options.out)
    print(f"{len(ids)} jobs, {options.out.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
