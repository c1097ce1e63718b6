"""Connections to the service, over which every client sends its requests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlencode
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Url, make_headers, parse_url

from warpsmith.errors import InvalidInput, ServiceUnreachable, Unavailable
from warpsmith.extensions.clients.client.request import Answer_co, Reply, Request

TIMEOUT_S = 30.0
"""Longest wait for a connection, for the next bytes of a reply, and for one of the connections to be free."""
CONNECTIONS = 100
"""Requests at a time; more of them wait."""
IDLE_S = 5.0
"""Seconds for which an unused connection is trusted; later, a proxy may have dropped it silently."""


class Transport:
    """Connections to one service. Threads may share it.

    A proxy that the environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) is used, but
    not for this machine.

    Args:
        url: address of the service.
        key: API key.

    Raises:
        InvalidInput: the address or the key cannot be one.
        Unavailable: the proxy that the environment names is none of HTTP.
    """

    def __init__(self, url: str, key: str | None) -> None:
        address = _address(url)
        self.url = url
        self._base = address._replace(auth=None, query=None, fragment=None).url.rstrip("/")
        self._headers = make_headers(basic_auth=unquote(address.auth)) if address.auth else {}
        if key is not None:
            self._headers["authorization"] = f"Bearer {_in_header('API key', key)}"
        self._pools = _pools(_proxy(address))
        self._used_s = time.monotonic()
        self._closed = False

    def close(self) -> None:
        """Close the connections, those in use after their replies."""
        self._closed = True
        self._pools.clear()

    def answer(self, request: Request[Answer_co]) -> Answer_co:
        """The answer to a request.

        Raises:
            Unavailable: the service cannot be reached, has failed, asks for patience, or is none of ours.
            NotFound: the service knows no such thing.
            InvalidInput: the service refuses the request, or the API key.
        """
        return request.answer(self._reply(request), self.url)

    def ready(self) -> str:
        """Empty if the service is ready; else the reason why it is not."""
        try:
            return self._reply(Request(bytes, "GET", "/readyz")).not_ready
        except Unavailable as exc:
            return str(exc)

    @contextmanager
    def lines(self, request: Request[None]) -> Iterator[Iterator[str] | None]:
        """The lines of a reply as they arrive; None if it has no content.

        Raises:
            ServiceUnreachable: the service cannot be reached, or the connection was lost.
            Unavailable: the service has failed, asks for patience, or is none of ours.
            NotFound: the service knows no such thing.
            InvalidInput: the service refuses the request, or the API key.
        """
        got = self._send(request, whole=False)
        try:
            if got.status != 200:
                request.answer(Reply(got.status, got.data), self.url)
            yield _lines(got) if got.status == 200 else None
        except HTTPError as exc:
            raise ServiceUnreachable(f"{self.url} does not answer: {_cause(exc)}") from exc
        finally:
            # Its rest is not wanted, so that the connection serves nobody else.
            got.close()
            got.release_conn()

    def _reply(self, request: Request[Answer_co]) -> Reply:
        got = self._send(request)
        self._used_s = time.monotonic()
        return Reply(got.status, got.data, got.headers.get("ETag", ""))

    def _send(self, request: Request[Answer_co], *, whole: bool = True) -> urllib3.BaseHTTPResponse:
        if self._closed:
            raise RuntimeError("the client is closed")
        if time.monotonic() - self._used_s > IDLE_S:
            self._pools.clear()
        self._used_s = time.monotonic()
        query = f"?{urlencode(request.params)}" if request.params else ""
        kind = {} if request.content is None else {"content-type": "application/json"}
        own = {name: _in_header(name, value) for name, value in request.headers.items()}
        try:
            return self._pools.request(
                request.method,
                f"{self._base}{request.path}{query}",
                body=None if request.content is None else request.content.encode(),
                headers={**self._headers, **kind, **own},
                pool_timeout=TIMEOUT_S,
                preload_content=whole,
            )
        except HTTPError as exc:
            raise ServiceUnreachable(f"{self.url} does not answer: {_cause(exc)}") from exc


def _lines(got: urllib3.BaseHTTPResponse) -> Iterator[str]:
    rest = b""
    for part in got.stream():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").removesuffix("\r")


def _address(url: str) -> Url:
    try:
        found = parse_url(url)
    except LocationParseError:
        found = Url()
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidInput("url", f"{url!r} must be as http://127.0.0.1:8765, with http or https")
    return found


def _in_header(name: str, value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise InvalidInput(name, "must be ASCII characters without line breaks")
    return value


def _pools(proxy: str | None) -> urllib3.PoolManager:
    # Neither a repeated request nor a redirect, to which the key would be sent as well.
    kept: dict[str, Any] = {"timeout": TIMEOUT_S, "retries": False, "maxsize": CONNECTIONS, "block": True}
    if proxy is None:
        return urllib3.PoolManager(**kept)
    try:
        auth = parse_url(proxy).auth
        headers = make_headers(proxy_basic_auth=unquote(auth)) if auth else None
        return urllib3.ProxyManager(proxy, proxy_headers=headers, **kept)
    except HTTPError as exc:
        words = "the proxy of the environment must be as http://HOST:PORT; else name the service in NO_PROXY"
        raise Unavailable(words) from exc


def _proxy(address: Url) -> str | None:
    """The proxy that the environment names for an address; None to reach it directly."""
    if _is_this_machine(address.host or "") or proxy_bypass(address.netloc or ""):
        return None
    named = getproxies()
    proxy = named.get(address.scheme or "") or named.get("all")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _cause(error: HTTPError) -> str:
    """Message of the error below urllib3's, whose own message names objects of its code."""
    below = next((part for part in error.args if isinstance(part, Exception)), error.__cause__)
    return str(below or "") or str(error)
