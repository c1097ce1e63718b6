"""A process that opens its SQLite database once more goes on seeing what others commit."""

import subprocess
import sys
from pathlib import Path

from sqlalchemy import text

from db.engine import Database
from testbed.deadlines import stretched

ROOT = Path(__file__).resolve().parents[2]
OTHER = """
import sys
from sqlalchemy import text
from db.engine import Database
database = Database(sys.argv[1])
with database.write() as session:
    session.execute(text("CREATE TABLE from_elsewhere (n INTEGER)"))
database.dispose()
"""
TABLES = text("SELECT count(*) FROM sqlite_master WHERE name = 'from_elsewhere'")


def test_a_second_opening_does_not_take_the_locks_of_the_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    first = Database(url)
    with first.write() as session:
        session.execute(text("CREATE TABLE own (n INTEGER)"))
    second = Database(url)
    # The last connection to close would put its changes into the file and remove its log.
    subprocess.run([sys.executable, "-c", OTHER, url], cwd=ROOT, check=True, timeout=stretched(60))
    with first.read() as session:
        assert (tmp_path / "own.db-wal").exists(), "the log of a database in use was removed"
        assert session.execute(TABLES).scalar_one() == 1
    for database in (first, second):
        database.dispose()
