"""The databases of `tests/db`."""

from tests.db.conftest import database, database_url, empty_url

__all__ = ["database", "database_url", "empty_url"]
