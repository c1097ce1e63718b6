"""Databases and brokers of the settings, and errors that say that one does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import ArgumentError, OperationalError

from db import migrate
from db.engine import Database, normal_url, open_database
from db.queue.broker import Notifier
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.settings import Settings, settings
from warpsmith.system.storage_errors import cause_of, usable_storage


class DatabaseAway(Unavailable):
    """A database that does not answer, or that does not exist."""


@contextmanager
def answering(url: str) -> Iterator[str]:
    """Context that uses a database; yields its address, without the password.

    Raises:
        DatabaseAway: it does not answer.
        InvalidInput: it is not the URL of a database.
    """
    try:
        yield _shown(url)
    except ArgumentError as exc:
        raise InvalidInput(
            "WARPSMITH_DATABASE_URL", f"{exc}; as in postgresql+psycopg://USER@HOST/NAME"
        ) from exc
    except OperationalError as exc:
        raise DatabaseAway(f"{_shown(url)} does not answer ({cause_of(exc)})") from exc


@contextmanager
def operated(current: Settings | None = None) -> Iterator[Database]:
    """Context with the database of these settings, or of the machine's, for a command of an operator.

    Raises:
        DatabaseAway: it does not answer.
        Unavailable: its schema does not fit this version.
    """
    chosen = current or settings()
    with answering(chosen.sqlalchemy_url):
        migrate.prepare(chosen)
        database = open_database(chosen)
        try:
            with usable_storage(Path(database.path)):
                yield database
        finally:
            database.dispose()


def database(settings: Settings) -> str:
    """Address of the database, without its password.

    Raises:
        Unavailable: it does not answer, or its schema is not of this version.
    """
    with answering(settings.sqlalchemy_url) as shown:
        migrate.require_current(settings.sqlalchemy_url)
    return shown


def broker(settings: Settings) -> str:
    """Address of the broker, without its password.

    Raises:
        Unavailable: it does not answer.
    """
    url = settings.broker_url or ""
    notifier = Notifier(settings)
    try:
        if not notifier.answers():
            raise Unavailable(f"{_shown(url)} does not answer")
    finally:
        notifier.close()
    return _shown(url)


def _shown(url: str) -> str:
    return normal_url(url).render_as_string(hide_password=True)
