"""Checks for `warpsmith doctor` that the database and the broker of the settings answer."""

from sqlalchemy.exc import DBAPIError

from db import migrate
from db.engine import normal_url
from db.queue.broker import Notifier
from warpsmith.errors import Unavailable
from warpsmith.settings import Settings
from warpsmith.system.storage_errors import cause_of


def database(settings: Settings) -> str:
    """Address of the database, without its password.

    Raises:
        Unavailable: it does not answer, or its schema is not of this version.
    """
    url = settings.sqlalchemy_url
    try:
        migrate.require_current(url)
    except DBAPIError as exc:
        raise Unavailable(f"{_shown(url)} does not answer ({cause_of(exc)})") from exc
    return _shown(url)


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
