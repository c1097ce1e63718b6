"""Sends one message to one address, within a time that holds whatever the receiver does."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from warpsmith.errors import InvalidInput
from warpsmith.system.addresses import Allowed
from warpsmith.webhooks.target import Resolver, Target, checked_addresses, parse_target, resolve

TIMEOUT_S = 10.0
"""Limit on an attempt in seconds, from the host's name to the end of the reply."""
REPLY_BYTES = 4096
"""Limit on the reply's body; what is behind it stays unread."""


@dataclass(frozen=True)
class DeliveryReply:
    """End of an attempt: the receiver's status, or the reason of the failure."""

    status: int | None
    """HTTP status; None if there was no answer."""
    error: str = ""
    """Reason of the failure; empty for a status of 2xx. Holds no text of the receiver."""

    @property
    def ok(self) -> bool:
        """True if the receiver took the message."""
        return not self.error

    @property
    def gone(self) -> bool:
        """True if the receiver wants no further message."""
        return self.status == 410


@dataclass(frozen=True)
class WebhookSender:
    """Sends messages; threads may share it."""

    allowed: Allowed
    resolver: Resolver = resolve
    timeout_s: float = TIMEOUT_S
    tls: ssl.SSLContext | None = None
    """Trusted certificates; None: those that this machine trusts."""

    def check(self, url: str, timeout_s: float) -> None:
        """Check that messages may be sent to a URL at present.

        Raises:
            InvalidInput: they may not.
        """
        target = parse_target(url)
        try:
            checked_addresses(target, self.allowed, self.resolver, timeout_s)
        except TimeoutError as exc:
            raise InvalidInput("url", "its host was not found in time; try again later") from exc

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryReply:
        """Send a message once. The host is resolved and checked now, and the connection goes to an address
        that was checked."""
        deadline_s = time.monotonic() + self.timeout_s
        late = DeliveryReply(None, f"no answer within {self.timeout_s:g} s")
        try:
            target = parse_target(url)
            addresses = checked_addresses(target, self.allowed, self.resolver, self.timeout_s)
            connected = self._connect(target, addresses, deadline_s)
        except InvalidInput as exc:
            return DeliveryReply(None, f"the URL was refused: {exc.message}")
        except OSError as exc:
            return late if time.monotonic() >= deadline_s else DeliveryReply(None, _words(exc))
        with connected:
            end = threading.Timer(max(0.0, deadline_s - time.monotonic()), _cut, [connected])
            end.daemon = True
            end.start()
            try:
                return _exchange(connected, target, headers, body, deadline_s)
            except (OSError, http.client.HTTPException, ValueError) as exc:
                return late if time.monotonic() >= deadline_s else DeliveryReply(None, _words(exc))
            finally:
                end.cancel()

    def _connect(self, target: Target, addresses: Sequence[str], deadline_s: float) -> socket.socket:
        failed: OSError = TimeoutError()
        for address in addresses:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            try:
                made = socket.create_connection((address, target.port), timeout=left_s)
            except OSError as exc:
                failed = exc
                continue
            if not target.secure:
                return made
            # The certificate is that of the name, whatever the address.
            made.settimeout(max(0.001, deadline_s - time.monotonic()))
            try:
                return (self.tls or _trusted()).wrap_socket(made, server_hostname=target.host)
            except BaseException:
                made.close()
                raise
        raise failed


@lru_cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _exchange(
    connected: socket.socket, target: Target, headers: Mapping[str, str], body: bytes, deadline_s: float
) -> DeliveryReply:
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.auto_open = 0
    connection.sock = connected
    connection.putrequest("POST", target.path, skip_host=True, skip_accept_encoding=True)
    sent = {"Host": target.netloc, **headers, "Content-Length": str(len(body)), "Connection": "close"}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    with connection.getresponse() as response:
        if time.monotonic() >= deadline_s:
            # Headers that were cut off look as if they had ended.
            raise TimeoutError
        # The status has decided; the rest is read so that the receiver can end in peace.
        with suppress(OSError, http.client.HTTPException, ValueError):
            response.read(REPLY_BYTES)
        status = response.status
    if 200 <= status < 300:
        return DeliveryReply(status)
    if 300 <= status < 400:
        return DeliveryReply(status, f"HTTP {status}: redirects are not followed")
    return DeliveryReply(status, f"HTTP {status}")


def _cut(connected: socket.socket) -> None:
    """End a connection that another thread waits for."""
    with suppress(OSError):
        # That of `SSLSocket` would drop what the other thread still reads from.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _words(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"its certificate was refused: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        return "TLS failed"
    if isinstance(exc, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(exc, TimeoutError):
        return "no connection in time"
    if isinstance(exc, OSError) and not isinstance(exc, http.client.HTTPException):
        return "the connection was lost, or none was possible"
    return "the answer is not HTTP"
