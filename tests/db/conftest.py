"""A migrated database a test, on SQLite and on Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from db import migrate
from db.engine import Database


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'folder' / 'test.db'}"
    else:
        yield request.getfixturevalue("postgres_url")


@pytest.fixture
def database_url(empty_url: str) -> str:
    """A database with our tables."""
    migrate.upgrade(empty_url)
    return empty_url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.dispose()
