"""API keys: what they look like, what they open, what their holder may use."""

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


class Scope(StrEnum):
    """What a key opens. None includes another, and only `admin` reaches beyond its tenant."""

    SUBMIT = "submit"
    """Submit and cancel jobs."""
    READ = "read"
    """Jobs, trials, results, workers."""
    AGENTS = "agents"
    """Read and answer what agents are asked."""
    ADMIN = "admin"
    """Of the whole fleet: metrics, and everybody's jobs, to list and to cancel."""


class KeyLimits(Frozen):
    """What one key may use; what is not set here is as the service's settings say."""

    requests_per_s: float | None = Field(default=None, gt=0)
    submits_per_minute: int | None = Field(default=None, ge=1)
    open_jobs: int | None = Field(default=None, ge=1)
    device_s_per_day: float | None = Field(default=None, gt=0)
    """Seconds that jobs of 24 hours were granted and have not given back by ending early."""
    usd_per_day: float | None = Field(default=None, gt=0)
    """Of models, likewise."""


def new_key() -> tuple[str, str]:
    """A fresh id, and the whole key, which is shown once and never stored."""
    key_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_CHARACTERS))
    return key_id, f"ws_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def id_of(key: str) -> str | None:
    """The id within a key; None where it has not the form of one."""
    match = _KEY.fullmatch(key)
    return None if match is None else match["id"]


def digest(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def fits(key: str, stored: str) -> bool:
    """True where the key has that digest; takes the same time either way."""
    return hmac.compare_digest(digest(key), stored)
