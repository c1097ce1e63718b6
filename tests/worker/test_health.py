"""The health check of a worker's image: well while the database hears of a worker of this machine."""

import os
from pathlib import Path

import pytest
from sqlalchemy import update

from db.engine import Database, utc_now
from db.repositories.workers import ALIVE_S, WorkerRepository
from db.tables import WorkerRow
from warpsmith.settings import Settings
from worker import health


@pytest.fixture(autouse=True)
def _settings(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    monkeypatch.setattr(health, "settings", lambda: Settings(_env_file=None, database_url=url))


def register(database: Database, host: str) -> None:
    with database.write() as session:
        WorkerRepository(session).register(f"w-{host}", host, 1, "0", ["control"], [], {})


def test_a_worker_of_this_machine_makes_it_healthy(database: Database) -> None:
    register(database, "elsewhere")
    assert health.main() == 1, "of another machine"
    register(database, os.uname().nodename)
    assert health.main() == 0


def test_a_worker_that_is_silent_is_not_healthy(database: Database) -> None:
    register(database, os.uname().nodename)
    with database.write() as session:
        old = utc_now().timestamp() - 2 * ALIVE_S
        session.execute(update(WorkerRow).values(last_seen=utc_now().fromtimestamp(old, tz=utc_now().tzinfo)))
    assert health.main() == 1


def test_a_database_that_is_away_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = f"sqlite:///{tmp_path}/none/x.db"
    monkeypatch.setattr(health, "settings", lambda: Settings(_env_file=None, database_url=away))
    assert health.main() == 1
