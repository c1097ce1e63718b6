"""The service over real HTTP, on SQLite and on Postgres, without a worker: what is stored stays put."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from testbed.api_service import Service, service_settings, serving
from testbed.servers import fresh_database


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests of a database; tests tell their own jobs from others by id."""
    folder = tmp_path_factory.mktemp(str(request.param))
    if request.param == "sqlite":
        with serving(service_settings(folder)) as running:
            yield running
    else:
        with (
            fresh_database(request.getfixturevalue("postgres_session")) as url,
            serving(service_settings(folder, url), migrated=True) as running,
        ):
            yield running


@pytest.fixture
def http(service: Service) -> httpx2.Client:
    """A client of the service."""
    return service.http


@pytest.fixture
def key() -> str:
    """An idempotency key that no other test has used."""
    return secrets.token_hex(8)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Service]:
    """A service of one test, on a new SQLite database."""
    with serving(service_settings(tmp_path / "data")) as running:
        yield running
