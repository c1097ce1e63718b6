"""Authentication of every request by its key, before its body is read, and the rights of that key."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.requests import description_pages
from api.requests import page_paths as paths
from api.requests.limits import Buckets
from api.requests.problems import Forbidden, database_away, problem
from db import api_keys
from db.api_keys import KeyLimits
from db.engine import Database
from db.repositories.keys import KeyRepository
from db.tables import DEFAULT_TENANT
from warpsmith.settings import Settings
from warpsmith.system.loopback import is_loopback

PUBLIC = frozenset({"/healthz", "/readyz"}) | description_pages.PUBLIC
"""Paths that reveal nothing about any tenant."""
PROBES = frozenset({"/healthz", "/readyz"})
"""Paths of supervisors. Nobody can use up their rate: they have none, and cost next to nothing."""
PUBLIC_PER_S = 50.0
"""Requests per second and address for the other public paths."""
WRONG_PER_S, WRONG_AT_ONCE = 0.5, 20.0
"""Wrong keys per second and address, and how many of them an address may send at once."""
REMEMBER_S = 5.0
"""Seconds for which this process caches a key; a revoked key is refused after that time at the latest."""
REMEMBERED = 10_000
NO_KEY = "send an API key: Authorization: Bearer ws_...; the operator makes one with `warpsmith keys create`"
CALLER = "warpsmith.caller"
GATE = "warpsmith.gate"
COOKIE = "warpsmith_key"
"""Name of the cookie in which a browser keeps the key."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
NO_LIMITS = KeyLimits()

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """The sender of a request."""

    tenant: str
    scopes: frozenset[str]
    key: str | None = None
    """Id of the key; None if no key is required."""
    limits: KeyLimits = NO_LIMITS


ANYBODY = Caller(DEFAULT_TENANT, frozenset(s.value for s in api_keys.KeyScope))
"""The caller on this machine if no key is required."""


class Gate:
    """Middleware that lets a request in if its key is valid and within its rate, and identifies the caller.

    Args:
        open_access: require no key. Requests must then name this machine as their host, so that no web page
            can make a local browser send them.
    """

    def __init__(self, app: ASGIApp, settings: Settings, open_access: bool = False) -> None:
        self._app = app
        self._settings = settings
        self._open = open_access
        self._buckets = Buckets()
        self._known: dict[str, tuple[float, Caller]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 401, 403, 429 or 503."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        scope[GATE] = self
        if scope["path"] in PROBES:
            refusal = None
        elif scope["path"] in PUBLIC or paths.is_public(scope["path"]):
            refusal = self._within(f"public {_address(scope)}", PUBLIC_PER_S)
        elif self._open:
            scope[CALLER] = ANYBODY
            refusal = _from_this_machine(headers)
        else:
            refusal = await self._identify(scope, headers)
        await (refusal or self._app)(scope, receive, send)

    async def _identify(self, scope: Scope, headers: dict[bytes, str]) -> Response | None:
        kind, _, key = headers.get(b"authorization", "").partition(" ")
        if kind.lower() != "bearer":
            key = cookie_parser(headers.get(b"cookie", "")).get(COOKIE, "")
            # A browser sends the cookie whoever made it send the request.
            if key and scope["method"] not in SAFE_METHODS and sent_from_elsewhere(scope):
                return problem(403, "Not from here", "a page of another site sent this request")
        return await self.refusal(scope, key.strip())

    async def refusal(self, scope: Scope, key: str) -> Response | None:
        """Refusal of a key; None if it is valid, and the scope names its caller from now on."""
        if api_keys.id_of(key) is None:
            return problem(401, "No API key", NO_KEY)
        # A key that was valid a while ago is looked up whatever others do at its address.
        wrong = f"wrong keys {_address(scope)}"
        wait_s = 0.0 if api_keys.digest(key) in self._known else self._buckets.lacks(wrong)
        if wait_s > 0:
            return problem(429, "Too many wrong keys", "from this address", retry_after_s=wait_s)
        try:
            caller = await self._caller(scope["app"].state.database, key)
        except (DBAPIError, PoolTimeout) as exc:
            return database_away(exc, scope["app"].state.database)
        if caller is None:
            if self._buckets.take(wrong, WRONG_PER_S, WRONG_AT_ONCE) == 0 and self._buckets.lacks(wrong):
                log.warning("many wrong keys from %s", _address(scope))
            return problem(401, "Not a valid API key", "it is unknown, revoked or expired")
        scope[CALLER] = caller
        rate = caller.limits.requests_per_s or self._settings.key_requests_per_s
        return self._within(caller.key or "", rate)

    async def _caller(self, database: Database, key: str) -> Caller | None:
        name = api_keys.digest(key)
        until, caller = self._known.get(name, (0.0, ANYBODY))
        if time.monotonic() < until:
            return caller
        found = await run_in_threadpool(_look_up, database, key)
        if found is None:
            self._known.pop(name, None)
            return None
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[name] = (time.monotonic() + REMEMBER_S, found)
        return found

    def _within(self, name: str, per_s: float) -> Response | None:
        wait_s = self._buckets.take(name, per_s)
        if wait_s <= 0:
            return None
        return problem(429, "Too many requests", f"at most {per_s:g} a second", retry_after_s=wait_s)


def _look_up(database: Database, key: str) -> Caller | None:
    with database.read() as session:
        row = KeyRepository(session).find(key)
        return None if row is None else Caller(row.tenant, frozenset(row.scopes), row.id, row.limits)


def headers_of(scope: Scope) -> dict[bytes, str]:
    """The headers of a request by their names in lower case; of several the last."""
    return {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}


def sent_from_elsewhere(scope: Scope) -> bool:
    """True unless a browser says that a page of this service sent the request."""
    headers = headers_of(scope)
    said = headers.get(b"sec-fetch-site")
    if said is not None:
        return said != "same-origin"
    origin = headers.get(b"origin", "")
    return not origin or origin.partition("://")[2] != headers.get(b"host", "")


def _from_this_machine(headers: dict[bytes, str]) -> Response | None:
    origin = headers.get(b"origin")
    named = [headers.get(b"host", "")] + ([] if origin is None else [origin.partition("://")[2]])
    if all(is_loopback(_host(name)) for name in named):
        return None
    detail = "without API keys this service answers programs of this machine only: call it 127.0.0.1"
    return problem(403, "Not from here", detail)


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _host(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0]


async def get_caller(request: Request) -> Caller:
    """The caller of the request."""
    found: Caller = request.scope[CALLER]
    return found


CurrentCaller = Annotated[Caller, Depends(get_caller)]

_BEARER = HTTPBearer(auto_error=False, description="A key made with `warpsmith keys create`.")


def needs(scope: api_keys.KeyScope) -> Callable[..., Awaitable[None]]:
    """A dependency: the key must have this scope."""

    async def check(
        caller: CurrentCaller,
        _key: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> None:
        if scope.value not in caller.scopes:
            raise Forbidden(f"this key lacks the scope {scope.value!r}")

    return check


def allow(scope: api_keys.KeyScope) -> list[Any]:
    """Value of `dependencies=` for a route or a router."""
    return [Depends(needs(scope))]
