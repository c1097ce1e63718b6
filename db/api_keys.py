"""API keys: their form, their scopes and their limits."""

import hashlib
import hmac
import re
import secrets
from enum import StrEnum

from pydantic import Field

from db.identifiers import ALPHABET
from warpsmith.domain.base import Frozen

ID_CHARACTERS = 12
SECRET_BYTES = 32
TENANT_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_KEY = re.compile(r"ws_(?P<id>[0-9a-z]{12})_[A-Za-z0-9_-]{43}")


class KeyScope(StrEnum):
    """Rights of a key. None includes another, and only `admin` reaches beyond its tenant."""

    SUBMIT = "submit"
    """Submit and cancel jobs."""
    READ = "read"
    """Jobs, trials, results, workers."""
    AGENTS = "agents"
    """Read and answer questions to agents."""
    ADMIN = "admin"
    """Metrics of the fleet; list and cancel jobs of all tenants."""


class KeyLimits(Frozen):
    """Limits of one key; unset ones come from the service's settings."""

    requests_per_s: float | None = Field(default=None, gt=0)
    submits_per_minute: int | None = Field(default=None, ge=1)
    open_jobs: int | None = Field(default=None, ge=1)
    device_s_per_day: float | None = Field(default=None, gt=0)
    """Seconds granted to jobs within 24 hours and not returned by ending early."""
    usd_per_day: float | None = Field(default=None, gt=0)
    """USD of model budget granted to jobs within 24 hours and not returned."""


def new_key() -> tuple[str, str]:
    """A fresh id, and the whole key, which is shown once and never stored."""
    key_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_CHARACTERS))
    return key_id, f"ws_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def id_of(key: str) -> str | None:
    """The id within a key; None if the text has not the form of a key."""
    match = _KEY.fullmatch(key)
    return None if match is None else match["id"]


def digest(key: str) -> str:
    """The digest of a key that is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def fits(key: str, stored: str) -> bool:
    """True if the key has that digest; takes the same time in both cases."""
    return hmac.compare_digest(digest(key), stored)
