"""Named locks exclude processes and threads, by whatever path they name the database, and end with them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from db.engine import Database
from db.named_lock import LOCK_FILE, alone
from testbed.deadlines import stretched
from warpsmith.system.own_locks import lock_folder

HOLDER = """
import sys, time
from db.engine import Database
from db.named_lock import alone
with alone(Database(sys.argv[1]), "kind", "name", wait=True) as held:
    print("held" if held else "taken", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@contextmanager
def opened(path: Path | str) -> Iterator[Database]:
    made = Database(f"sqlite:///{path}")
    try:
        yield made
    finally:
        made.dispose()


def is_free(database: Database, kind: str = "kind", name: str = "name") -> bool:
    with alone(database, kind, name, wait=False) as held:
        return held is not None


def test_one_name_of_one_kind_is_held_once(database: Database) -> None:
    with alone(database, "kind", "name", wait=True) as held:
        assert held is not None and held.holds()
        assert not is_free(database)
        assert is_free(database, kind="other")
        assert all(is_free(database, name=f"name{n}") for n in range(40))
    assert is_free(database)


def test_who_waits_gets_the_lock_when_it_is_free(database: Database) -> None:
    came = []

    def wait() -> None:
        with alone(database, "kind", "name", wait=True) as held:
            came.append(held is not None)

    with alone(database, "kind", "name", wait=True):
        waiting = Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        assert came == []
    waiting.join(stretched(10))
    assert came == [True]


def test_a_database_is_the_same_by_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "linked").symlink_to(folder)
    (folder / "other.db").symlink_to(folder / "jobs.db")
    monkeypatch.chdir(folder)
    with opened(folder / "jobs.db") as first, alone(first, "kind", "name", wait=True):
        for path in (tmp_path / "linked" / "jobs.db", folder / "other.db", "jobs.db", "../data/jobs.db"):
            with opened(path) as second:
                assert not is_free(second), path
        with opened(folder / "another.db") as third:
            assert is_free(third)


def test_no_lock_lies_beside_the_database(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with opened(folder / "jobs.db") as database, alone(database, "kind", "name", wait=True):
        assert [p.name for p in folder.iterdir() if "lock" in p.name] == []
    (found,) = home.rglob(LOCK_FILE)
    assert found.stat().st_mode & 0o777 == 0o600
    assert found.parent.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (lock_folder() / LOCK_FILE).symlink_to(tmp_path / "target")
    with opened(tmp_path / "jobs.db") as database, pytest.raises(OSError, match="symbolic links"):
        is_free(database)
    assert not (tmp_path / "target").exists()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    command = [sys.executable, "-c", HOLDER, f"sqlite:///{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with opened(path) as database:
            assert not is_free(database)
            holder.kill()
            holder.wait()
            assert is_free(database)
