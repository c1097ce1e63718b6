"""API keys: found by id, checked by digest, ended by revocation or expiry."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import exists, or_, select, update
from sqlalchemy.orm import Session

from db.api_keys import KeyLimits, KeyScope, digest, fits, id_of, new_key
from db.engine import utc_now
from db.tables import ApiKeyRow
from warpsmith.errors import NotFound


class KeyRepository:
    """Queries on the `api_key` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(
        self,
        name: str,
        tenant: str,
        scopes: Sequence[KeyScope],
        limits: KeyLimits,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKeyRow, str]:
        """A new key; its text is returned only here."""
        key_id, key = new_key()
        row = ApiKeyRow(
            id=key_id,
            digest=digest(key),
            name=name,
            tenant=tenant,
            scopes=tuple(s.value for s in scopes),
            limits=limits,
            created_at=utc_now(),
            expires_at=expires_at,
        )
        self._session.add(row)
        self._session.flush()
        return row, key

    def find(self, key: str) -> ApiKeyRow | None:
        """The row of a valid key; None for any other text."""
        key_id = id_of(key)
        row = None if key_id is None else self._session.get(ApiKeyRow, key_id)
        # An unknown key takes as long to refuse as one with a wrong secret.
        genuine = fits(key, row.digest if row is not None else "0" * 64)
        return row if row is not None and genuine and self.is_active(row) else None

    def get(self, key_id: str) -> ApiKeyRow:
        """Return the key with an id.

        Raises:
            NotFound: no key has that id.
        """
        row = self._session.get(ApiKeyRow, key_id, populate_existing=True)
        if row is None:
            raise NotFound(f"no key {key_id}")
        return row

    def all(self) -> Sequence[ApiKeyRow]:
        """Every key there was, oldest first."""
        return self._session.scalars(select(ApiKeyRow).order_by(ApiKeyRow.created_at, ApiKeyRow.id)).all()

    def any_active(self) -> bool:
        """True if a valid key exists."""
        lasts = or_(ApiKeyRow.expires_at.is_(None), ApiKeyRow.expires_at > utc_now())
        return bool(self._session.scalar(select(exists().where(ApiKeyRow.revoked_at.is_(None), lasts))))

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; False if it had already ended.

        Raises:
            NotFound: no key has that id.
        """
        changed = self._session.execute(
            update(ApiKeyRow)
            .where(ApiKeyRow.id == key_id, ApiKeyRow.revoked_at.is_(None))
            .values(revoked_at=utc_now())
            .returning(ApiKeyRow.id)
        ).scalar_one_or_none()
        self.get(key_id)
        return changed is not None

    def rotate(self, key_id: str, grace_s: float) -> tuple[ApiKeyRow, str]:
        """A new key that replaces an old one; the old one ends after `grace_s`.

        Raises:
            NotFound: no key has that id, or it is no longer valid.
        """
        old = self.get(key_id)
        if not self.is_active(old):
            raise NotFound(f"key {key_id} has ended; create another")
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        expires_at = None if lifetime is None else utc_now() + lifetime
        row, key = self.create(
            old.name, old.tenant, [KeyScope(s) for s in old.scopes], old.limits, expires_at
        )
        end = utc_now() + timedelta(seconds=grace_s)
        old.expires_at = end if old.expires_at is None else min(end, old.expires_at)
        if grace_s <= 0:
            old.revoked_at = utc_now()
        self._session.flush()
        return row, key

    @staticmethod
    def is_active(row: ApiKeyRow) -> bool:
        """True while the key is valid."""
        return row.revoked_at is None and (row.expires_at is None or row.expires_at > utc_now())
