"""A database a test, on SQLite and on Postgres, with nothing in it or with our tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from db.engine import Database


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'folder' / 'test.db'}"
    else:
        yield request.getfixturevalue("postgres_url")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.dispose()
