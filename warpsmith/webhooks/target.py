"""Targets of webhooks: URLs and the addresses of their hosts, both checked before anything is sent."""

import queue
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.errors import InvalidInput
from warpsmith.system.addresses import Allowed

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port; raises OSError if there are none."""

_URL = re.compile(r"[!-\[\]-~]*")
"""Printable ASCII without spaces and backslashes."""
LOW_PORTS = frozenset({80, 443})
"""Ports below 1024 that are allowed. Behind the others are services that read lines of text: mail, shells,
directories."""
NOT_REACHED = (
    "its host has no address, or one that is not on the public internet; an operator may allow it in "
    "WARPSMITH_WEBHOOK_PRIVATE"
)
"""Refusal for either reason, so that nobody learns which names exist in a private network."""


@dataclass(frozen=True)
class Target:
    """The parts of a URL."""

    secure: bool
    host: str
    """Name or address, without brackets."""
    port: int
    netloc: str
    """Host and port as the `Host` header has them."""
    path: str
    """Path and query."""


def parse_target(url: str) -> Target:
    """The parts of a webhook's URL.

    Raises:
        InvalidInput: it cannot be the URL of a webhook.
    """
    from urllib3.exceptions import LocationParseError
    from urllib3.util import Url, parse_url

    if _URL.fullmatch(url) is None:
        words = "must be ASCII without spaces and backslashes; write a host in another script as xn--..."
        raise InvalidInput("url", words)
    try:
        found = parse_url(url)
    except LocationParseError:
        found = Url()
    host = (found.host or "").strip("[]")
    if found.scheme not in ("http", "https") or not host or "%" in host:
        raise InvalidInput("url", "must be as https://example.com/path, with https or http")
    if found.auth is not None:
        raise InvalidInput("url", "must hold no user and password; check the signature of what arrives")
    if found.fragment is not None:
        raise InvalidInput("url", "must have no fragment (#...), which is never sent")
    secure = found.scheme == "https"
    port = (443 if secure else 80) if found.port is None else found.port
    if not (port in LOW_PORTS or 1024 <= port <= 65535):
        raise InvalidInput("url", f"has port {port}; it must be 80, 443, or from 1024 to 65535")
    return Target(secure, host, port, found.netloc or host, found.request_uri)


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as this machine finds them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def checked_addresses(
    target: Target, allowed: Allowed, resolver: Resolver, timeout_s: float
) -> Sequence[str]:
    """The addresses of a target, all of which may be sent to.

    Raises:
        InvalidInput: one of them may not be, or there are none.
        TimeoutError: they were not found in time.
    """
    try:
        found = _within(timeout_s, lambda: resolver(target.host, target.port))
    except TimeoutError:
        raise
    except (OSError, UnicodeError):
        found = []
    # A single bad one refuses all: which one is taken must not depend on luck.
    if not found or not all(allowed.permits(target.host, address) for address in found):
        raise InvalidInput("url", NOT_REACHED)
    return found


def _within(timeout_s: float, look_up: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Addresses that a look-up finds. The system's own cannot be interrupted; a thread is left to it."""
    done: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(look_up())
        except (OSError, UnicodeError) as exc:
            done.put(exc)

    threading.Thread(target=run, name="webhook-host", daemon=True).start()
    try:
        found = done.get(timeout=max(0.0, timeout_s))
    except queue.Empty:
        raise TimeoutError("the host's name was not resolved in time") from None
    if isinstance(found, Exception):
        raise found
    return found
