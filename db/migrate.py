"""Migrations: bring a database to the schema of this version; `warpsmith migrate`.

Safe to run from several processes at once: the first does the work, the others wait and find it done.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, inspect, text

from db.engine import make_engine, normal_url
from db.tables import Base
from db.trouble import make_room_for_trouble
from warpsmith.errors import NotFound, StorageUnusable, Unavailable
from warpsmith.settings import Settings
from warpsmith.system.own_files import own_folder
from warpsmith.system.storage_errors import require_room, usable_storage

VERSION_TABLE = "warpsmith_version"
_LOCK = 0x77617270
"""Number of an advisory lock that no other program uses."""


def _ours(name: str | None, kind: str, _parents: Any) -> bool:
    return kind != "table" or name in Base.metadata.tables


OPTIONS: dict[str, Any] = {
    "target_metadata": Base.metadata,
    "version_table": VERSION_TABLE,
    "include_name": _ours,
    "compare_type": True,
    "render_as_batch": True,
}
"""Other tables of the database, such as Optuna's, are left alone."""


def prepare(settings: Settings) -> None:
    """Make the database of these settings ready: the embedded mode's is made and brought forward.

    Raises:
        StorageUnusable: its folder or its file cannot be used, or another program made the file.
        Unavailable: a server's schema does not fit this version.
    """
    if not settings.embedded:
        require_current(settings.sqlalchemy_url)
        return
    folder = settings.data_dir.absolute()
    with usable_storage(folder):
        own_folder(folder)
        require_room(folder)
        url = settings.sqlalchemy_url
    require_own(url)
    with usable_storage(folder):
        make_room_for_trouble(str(folder / "warpsmith.db"))
    upgrade(url)


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at `url` forward; an empty one gets all tables.

    Raises:
        Unavailable: the database is at a revision that this version does not know.
    """
    with _connection(url) as connection:
        _require_known(connection)
        command.upgrade(_config(connection), revision)


def downgrade(url: str, revision: str = "base") -> None:
    """Take the database back; `base` drops all our tables and their contents.

    Raises:
        NotFound: this version has no such revision.
        Unavailable: the database is at a revision that this version does not know.
    """
    known = ["base", *reversed(_revisions())]
    if revision not in known:
        raise NotFound(f"no revision {revision!r}; this version knows {', '.join(known)}")
    with _connection(url) as connection:
        _require_known(connection)
        command.downgrade(_config(connection), revision)


def current(url: str) -> str | None:
    """The revision of the database; None if it has none of our tables."""
    with _connection(url) as connection:
        return _revision(connection)


def head() -> str | None:
    """The revision that this version of the program needs."""
    return _scripts().get_current_head()


def require_current(url: str) -> None:
    """Check that the schema fits this version.

    Raises:
        StorageUnusable: it is of a newer version, or the file cannot be used.
        Unavailable: it does not; the message says what to run.
    """
    with _connection(url) as connection:
        found = _require_known(connection)
    if found != head():
        raise Unavailable(
            f"the database is at revision {found}, this version needs {head()}: run `warpsmith migrate`"
        )


def require_own(url: str) -> None:
    """Check that a file is a database of this program, or an empty one, which this version can bring forward.

    Raises:
        StorageUnusable: it is not, or it cannot be used.
    """
    with _connection(url) as connection:
        tables = inspect(connection).get_table_names()
        if tables and VERSION_TABLE not in tables:
            words = f"it has tables of another program, such as {tables[0]!r}"
            raise FileExistsError(errno.EEXIST, words, connection.engine.url.database)
        _require_known(connection)


def differences(url: str) -> list[Any]:
    """Differences between `db.tables` and the database, in either direction."""
    with _connection(url) as connection:
        context = MigrationContext.configure(connection, opts=OPTIONS)
        return list(compare_metadata(context, Base.metadata))


def _require_known(connection: Connection) -> str | None:
    revision = _revision(connection)
    if revision is None or revision in _revisions():
        return revision
    raise StorageUnusable(
        f"the database is at revision {revision}, which this version does not know (its own is {head()}). If "
        "a newer version made it, start that version. If a version from before the first release made it, it "
        "cannot be upgraded: export its results with that version, and give this one an empty database: "
        f"{connection.engine.url.render_as_string()}"
    )


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts=OPTIONS).get_current_revision()


def _revisions() -> list[str]:
    """Revisions of this version, newest first."""
    return [script.revision for script in _scripts().walk_revisions()]


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(None))


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    with usable_storage(Path(normal_url(url).database or "")):
        yield from _connected(url)


def _connected(url: str) -> Iterator[Connection]:
    engine = make_engine(url)
    if engine.dialect.name == "sqlite":
        # Rebuilding a table drops it in between, which would delete the rows that refer to it.
        event.listen(engine, "connect", _without_foreign_keys)
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection
    finally:
        engine.dispose()


def _without_foreign_keys(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")


def _config(connection: Connection | None) -> Config:
    config = Config()
    # Its values are templates, in which a percent sign is written twice.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
