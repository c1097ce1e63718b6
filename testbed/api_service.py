"""The API over a real socket, in a thread of the test's own process."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy.exc import DBAPIError

from api.app import create_app
from api.connections import make_server
from db import migrate
from db.api_keys import KeyLimits, KeyScope, new_key
from db.engine import Database
from db.repositories.keys import KeyRepository
from db.tables import DEFAULT_TENANT
from testbed.deadlines import Deadline
from testbed.plain_http import NO_TLS
from warpsmith.settings import Settings

START_S = 20.0
CLIENT_S = 120.0
"""Patience of a client: only what hangs takes so long on any machine."""


@dataclass(frozen=True)
class Service:
    """A running API, a client of it, and the database behind it."""

    http: httpx2.Client
    database: Database
    settings: Settings
    key: str
    """What the client shows; it opens everything of the tenant `default`."""

    def client(self, key: str | None) -> httpx2.Client:
        """A client with another key, or without any."""
        headers = {} if key is None else bearer(key)
        return httpx2.Client(base_url=self.http.base_url, timeout=CLIENT_S, headers=headers, verify=NO_TLS)

    def new_key(
        self, tenant: str = DEFAULT_TENANT, scopes: Sequence[KeyScope] = tuple(KeyScope), **limits: Any
    ) -> str:
        """A fresh key."""
        with self.database.write() as session:
            return KeyRepository(session).create("test", tenant, scopes, KeyLimits(**limits))[1]


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {key}"}


@contextmanager
def serving(settings: Settings, *, migrated: bool = False, open_access: bool = False) -> Iterator[Service]:
    """The API in a thread of this process, behind a real socket.

    Args:
        migrated: bring a server's database forward first, as an operator does.
    """
    if migrated or settings.embedded:
        migrate.upgrade(settings.sqlalchemy_url)
    app = create_app(settings, with_worker=False, open_access=open_access)
    server = make_server(app, "127.0.0.1", 0, "critical")
    thread = threading.Thread(target=server.run, name="api")
    thread.start()
    try:
        deadline = Deadline(START_S)
        while not server.started:
            assert thread.is_alive(), "the server ended before it had started"
            assert not deadline.passed(), "the server did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        key = _key(app.state.database)
        headers = {} if open_access else bearer(key)
        with httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=CLIENT_S, headers=headers, verify=NO_TLS
        ) as http:
            yield Service(http, app.state.database, settings, key)
    finally:
        server.should_exit = True
        thread.join()


def service_settings(
    folder: Path, database_url: str | None = None, broker_url: str | None = None, **changes: Any
) -> Settings:
    """Settings that depend on nothing in the environment of the test run; keys may do what they like."""
    values: dict[str, Any] = {
        "data_dir": folder,
        "database_url": database_url,
        "broker_url": broker_url,
        "include_dirs": "cutlass=/opt/cutlass/include",
        "key_requests_per_s": 1e6,
        "key_submits_per_minute": 10**6,
        "key_open_jobs": 10**6,
        "max_open_jobs": 10**6,
    }
    return Settings(_env_file=None, **(values | changes))


def _key(database: Database) -> str:
    try:
        with database.write() as session:
            return KeyRepository(session).create("tests", DEFAULT_TENANT, tuple(KeyScope), KeyLimits())[1]
    except DBAPIError:
        # The database is away, or not migrated: no key can be good there.
        return new_key()[1]
