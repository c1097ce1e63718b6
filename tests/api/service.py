"""The API over a real socket, in a thread of the test's own process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import uvicorn

from api.app import create_app
from db import migrate
from db.engine import Database
from warpsmith.settings import Settings

START_S = 20.0


@dataclass(frozen=True)
class Service:
    """A running API, a client of it, and the database behind it."""

    http: httpx2.Client
    database: Database
    settings: Settings


@contextmanager
def serving(settings: Settings, *, migrated: bool = False) -> Iterator[Service]:
    """The API in a thread of this process, behind a real socket.

    Args:
        migrated: bring the database forward first, as an operator does in the full mode.
    """
    if migrated:
        migrate.upgrade(settings.sqlalchemy_url)
    app = create_app(settings, with_worker=False)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, name="api")
    thread.start()
    try:
        deadline = time.monotonic() + START_S
        while not server.started:
            assert thread.is_alive(), "the server ended before it had started"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            yield Service(http, app.state.database, settings)
    finally:
        server.should_exit = True
        thread.join()


def service_settings(
    folder: Path, database_url: str | None = None, broker_url: str | None = None
) -> Settings:
    """Settings that depend on nothing in the environment of the test run."""
    return Settings(
        _env_file=None,
        data_dir=folder,
        database_url=database_url,
        broker_url=broker_url,
        include_dirs="cutlass=/opt/cutlass/include",
    )
