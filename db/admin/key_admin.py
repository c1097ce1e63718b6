"""Operations of an operator on API keys, in the database of the settings: the `warpsmith keys` commands."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from db import migrate
from db.api_keys import KeyLimits, KeyScope
from db.engine import Database, open_database, utc_now
from db.repositories.keys import KeyRepository, is_active
from db.tables import ApiKeyRow
from warpsmith.settings import Settings, settings
from warpsmith.system.storage_errors import usable_storage


@dataclass(frozen=True)
class KeyView:
    """A key as an operator sees it."""

    id: str
    name: str
    tenant: str
    scopes: tuple[str, ...]
    limits: KeyLimits
    created_at: datetime
    expires_at: datetime | None
    active: bool


def any_active(current: Settings | None = None) -> bool | None:
    """True if a valid key exists; None if the database is unavailable."""
    try:
        with _database(current) as database, database.read() as session:
            return KeyRepository(session).any_active()
    except DBAPIError:
        return None


def create(
    name: str,
    tenant: str,
    scopes: Sequence[str],
    days: float | None,
    limits: KeyLimits,
    current: Settings | None = None,
) -> tuple[KeyView, str]:
    """A new key; its text is returned only here."""
    expires_at = None if days is None else utc_now() + timedelta(days=days)
    with _database(current) as database, database.write() as session:
        chosen = [KeyScope(s) for s in scopes]
        row, key = KeyRepository(session).create(name, tenant, chosen, limits, expires_at)
        return _view(row), key


def every(current: Settings | None = None) -> list[KeyView]:
    """All keys there ever were, oldest first."""
    with _database(current) as database, database.read() as session:
        return [_view(row) for row in KeyRepository(session).all()]


def revoke(key_id: str, current: Settings | None = None) -> bool:
    """Revoke a key; False if it had already ended."""
    with _database(current) as database, database.write() as session:
        return KeyRepository(session).revoke(key_id)


def rotate(key_id: str, grace_s: float, current: Settings | None = None) -> tuple[KeyView, str]:
    """A new key like an old one, which ends after `grace_s`."""
    with _database(current) as database, database.write() as session:
        row, key = KeyRepository(session).rotate(key_id, grace_s)
        return _view(row), key


@contextmanager
def _database(current: Settings | None) -> Iterator[Database]:
    chosen = current or settings()
    migrate.prepare(chosen)
    database = open_database(chosen)
    try:
        with usable_storage(Path(database.path)):
            yield database
    finally:
        database.dispose()


def _view(row: ApiKeyRow) -> KeyView:
    return KeyView(
        id=row.id,
        name=row.name,
        tenant=row.tenant,
        scopes=row.scopes,
        limits=row.limits,
        created_at=row.created_at,
        expires_at=row.expires_at,
        active=is_active(row),
    )
