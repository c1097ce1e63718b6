"""Engines and sessions, on SQLite and Postgres alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Engine,
    create_engine,
    event,
    func,
    literal,
    type_coerce,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.orm import Session, sessionmaker

from db.tenants import TENANT, watch
from db.types import UtcDateTime
from warpsmith.settings import Settings

BUSY_TIMEOUT_S = 30


class Database:
    """One database and its sessions. Make one in each process, after any fork.

    Args:
        url: SQLAlchemy URL; `postgresql://` means psycopg 3.
        pool_size: connections kept open to a server.
    """

    def __init__(self, url: str, pool_size: int = 5) -> None:
        self.engine = make_engine(url, pool_size)
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        readers = self.engine.execution_options(read_only=True)
        self._read = sessionmaker(readers, expire_on_commit=False)
        self._info: dict[str, str] = {}
        for sessions in (self._write, self._read):
            watch(sessions)

    def of(self, tenant: str) -> "Database":
        """The same database as one tenant sees it; both share their connections."""
        bound = copy(self)
        bound._info = {TENANT: tenant}
        return bound

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction, committed when the block ends well, else rolled back."""
        with self._write(info=self._info) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One transaction that writes nothing; on SQLite it never waits for a writer."""
        with self._read(info=self._info) as session, session.begin():
            yield session

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_database(settings: Settings) -> Database:
    """The database of these settings; its folder is made where it is SQLite."""
    return Database(settings.sqlalchemy_url)


def make_engine(url: str, pool_size: int = 5) -> Engine:
    """An engine with what both databases need to be used by many processes at once."""
    address = normal_url(url)
    if address.get_backend_name() != "sqlite":
        return create_engine(
            address, pool_pre_ping=True, pool_size=pool_size, connect_args={"connect_timeout": 10}
        )
    if address.database:
        Path(address.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(address, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def normal_url(url: str) -> URL:
    """The URL with psycopg 3 as the driver where it names none."""
    address = make_url(url)
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address


def clock(session: Session, offset_s: float = 0.0) -> ColumnElement[datetime]:
    """Now, by the one clock that all workers share: the server's on Postgres, this machine's on SQLite."""
    if session.get_bind().dialect.name == "sqlite":
        return literal(datetime.now(UTC) + timedelta(seconds=offset_s), UtcDateTime)
    shifted = func.clock_timestamp(type_=DateTime(timezone=True)) + timedelta(seconds=offset_s)
    return type_coerce(shifted, UtcDateTime)


def utc_now() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own BEGIN would be deferred; ours (below) takes the write lock at once.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns into a writer fails at once when another has written since.
    reads = connection.get_execution_options().get("read_only")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
