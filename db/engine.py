"""Engines and sessions, on SQLite and Postgres alike."""

import logging
import math
import sqlite3
import time
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
    Insert,
    create_engine,
    event,
    func,
    literal,
    select,
    text,
    type_coerce,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from db.column_types import UtcDateTime
from db.tenant_sessions import TENANT, watch
from db.trouble import tell_trouble
from warpsmith.settings import Settings
from warpsmith.system.own_files import own_file, own_folder
from warpsmith.system.storage_errors import cause_of

BUSY_TIMEOUT_S = 30
WAL_AGAIN_S = 0.02
FRESH_S = 1.0
"""Seconds after its last use for which a connection is assumed to be alive."""
USED_AT = "used_at"
REPEAT_S = 30.0
"""Seconds after which the log says again what work still waits for."""

log = logging.getLogger(__name__)


class Database:
    """A database and its sessions. Create one per process, after any fork.

    Args:
        url: SQLAlchemy URL; `postgresql://` means psycopg 3.
        pool_size: connections kept open to a server.
    """

    def __init__(self, url: str, pool_size: int = 5) -> None:
        self.engine = make_engine(url, pool_size)
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        readers = self.engine.execution_options(read_only=True)
        self._read = sessionmaker(readers, expire_on_commit=False)
        # A transaction around a single statement would cost two further messages.
        sqlite = self.engine.dialect.name == "sqlite"
        self._single = readers if sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._info: dict[str, str] = {}
        self._said: dict[str, tuple[str, float]] = {}
        for sessions in (self._write, self._read):
            watch(sessions)

    def of(self, tenant: str) -> "Database":
        """This database as seen by one tenant; both share their connections."""
        bound = copy(self)
        bound._info = {TENANT: tenant}
        return bound

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Context with a transaction, committed when the block ends well, else rolled back."""
        with self._write(info=self._info) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Context with a transaction that writes nothing; on SQLite it never waits for a writer."""
        with self._read(info=self._info) as session, session.begin():
            yield session

    @property
    def tenant(self) -> str | None:
        """Tenant of this view; None: all tenants."""
        return self._info.get(TENANT)

    @property
    def is_server(self) -> bool:
        """True if it is a server; False if it is a file."""
        return self.engine.dialect.name != "sqlite"

    @contextmanager
    def single(self) -> Iterator[Connection]:
        """A connection for one read-only statement, which must separate tenants itself."""
        with self._single.connect() as connection:
            yield connection

    @property
    def path(self) -> str:
        """Path of its file; empty if it is a server."""
        return "" if self.is_server else self.engine.url.database or ""

    def waits(self, what: str, exc: Exception) -> None:
        """Tell that work waits for this database: in the log once for a cause, then every `REPEAT_S`; and to
        who watches a job."""
        cause = cause_of(exc) + (f": {self.path}" if self.path else "")
        if self.path:
            tell_trouble(self.path, cause)
        said, at_s = self._said.get(what, ("", 0.0))
        if cause != said or time.monotonic() >= at_s + REPEAT_S:
            self._said[what] = cause, time.monotonic()
            log.warning("%s waits for the database: %s", what, cause)

    def dispose(self) -> None:
        """Close all connections; one that a thread still uses is closed when the thread returns it."""
        event.listen(self.engine.pool, "checkin", _close_returned)
        self.engine.dispose()


def _close_returned(connection: Any, _record: Any) -> None:
    if connection is not None:
        connection.close()


def open_database(settings: Settings) -> Database:
    """The database for these settings; the folder of an SQLite database is created."""
    return Database(settings.sqlalchemy_url)


def make_engine(url: str, pool_size: int = 5) -> Engine:
    """An engine configured for concurrent use by many processes, on both databases."""
    address = normal_url(url)
    if address.get_backend_name() != "sqlite":
        made = create_engine(address, pool_size=pool_size, connect_args={"connect_timeout": 10})
        _ping_the_idle(made)
        return made
    if address.database:
        own_folder(Path(address.database).absolute().parent)
        # SQLite gives its other files the mode of this one.
        own_file(Path(address.database))
    engine = create_engine(address, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def normal_url(url: str) -> URL:
    """The URL, with psycopg 3 as the driver if it names none."""
    address = make_url(url)
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address


def clock(session: Session, offset_s: float = 0.0) -> ColumnElement[datetime]:
    """The current time by the clock that all workers share: the server's on Postgres, this machine's on
    SQLite.

    Every time in a row that workers compare comes from here, so that a machine's wrong clock does no harm.
    """
    if session.get_bind().dialect.name == "sqlite":
        return literal(datetime.now(UTC) + timedelta(seconds=offset_s), UtcDateTime)
    shifted = func.clock_timestamp(type_=DateTime(timezone=True)) + timedelta(seconds=offset_s)
    return type_coerce(shifted, UtcDateTime)


def now(session: Session) -> datetime:
    """Time of the database at this moment; see `clock`."""
    return session.execute(select(clock(session))).scalar_one()


def insert_new(session: Session, table: type[Any]) -> Insert:
    """An INSERT that leaves out rows which a unique key refuses; `RETURNING` names those that went in."""
    if session.get_bind().dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table).on_conflict_do_nothing()
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table).on_conflict_do_nothing()


def without_waiting_for_the_disk(session: Session) -> None:
    """Do not wait for the disk in a transaction that is repeated if a server crash loses it."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SET LOCAL synchronous_commit = off"))


def utc_now() -> datetime:
    """Now by this machine's clock, aware, in UTC. Times that workers compare come from `clock`."""
    return datetime.now(UTC)


def _ping_the_idle(engine: Engine) -> None:
    """Ping connections like SQLAlchemy's `pool_pre_ping`, except those used a moment ago."""

    def note(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[USED_AT] = time.monotonic()

    def check(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        if time.monotonic() - record.info.get(USED_AT, math.inf) < FRESH_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as exc:
            # All connections of the pool are as old; the pool then opens a new one.
            raise InvalidatePoolError from exc

    event.listen(engine, "checkin", note)
    event.listen(engine, "checkout", check)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own BEGIN would be deferred; ours (below) takes the write lock at once.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    _write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    # SQLite does not wait here when another connection changes the mode of the same new file.
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(WAL_AGAIN_S)


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns into a writer fails at once when another has written since.
    reads = connection.get_execution_options().get("read_only")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
