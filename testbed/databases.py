"""Migrated databases for tests: the migrations run once on each kind of server, and every test gets a copy.

What the fixtures need is imported where it is used: a GPU node that runs `tests/gpu` need not have it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.servers import fresh_database

if TYPE_CHECKING:
    from db.engine import Database


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, which nobody opens again."""
    from db import migrate

    path = tmp_path_factory.mktemp("migrated") / "template.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_session: str) -> Iterator[str]:
    """The name of a migrated database, to which nobody connects again: Postgres copies no other."""
    from sqlalchemy.engine import make_url

    from db import migrate

    with fresh_database(postgres_session) as url:
        migrate.upgrade(url)
        name = make_url(url).database
        assert name is not None
        yield name


@pytest.fixture
def migrated_sqlite(sqlite_template: Path, tmp_path: Path) -> str:
    """A SQLite database of one test, with our tables."""
    path = tmp_path / "migrated.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def migrated_postgres(postgres_session: str, postgres_template: str) -> Iterator[str]:
    """A Postgres database of one test, with our tables."""
    with fresh_database(postgres_session, postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A database of one test with our tables, on SQLite and on Postgres."""
    return str(request.getfixturevalue(f"migrated_{request.param}"))


@pytest.fixture
def database(database_url: str) -> "Iterator[Database]":
    """The same, opened."""
    from db.engine import Database

    opened = Database(database_url)
    yield opened
    opened.dispose()
