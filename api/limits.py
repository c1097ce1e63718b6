"""Limits on requests: their size, enforced while they arrive, and their rate."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import TooLarge, problem

MAX_BODY_BYTES = 1 << 20
BURST_S = 2.0
"""Seconds of its rate that an idle caller may send at once."""
MAX_BUCKETS = 10_000


class BodyLimit:
    """Middleware that stops reading at the limit, whatever Content-Length says."""

    def __init__(self, app: ASGIApp, limit_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request and count its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0
        text = f"a request may have {self._limit_bytes} bytes"

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit_bytes:
                raise TooLarge(text)
            return message

        try:
            await self._app(scope, counted, send)
        except TooLarge:
            await problem(413, "Body too large", text)(scope, receive, send)


class Buckets:
    """Token buckets by name, in this process: each fills at its rate and holds `BURST_S` seconds of it."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[float, float]] = {}

    def take(self, name: str, per_s: float) -> float:
        """Take a token: returns 0, or the seconds until one is available."""
        now = time.monotonic()
        most = max(1.0, per_s * BURST_S)
        if len(self._tokens) >= MAX_BUCKETS:
            self._tokens.clear()
        tokens, at = self._tokens.get(name, (most, now))
        tokens = min(most, tokens + (now - at) * per_s)
        taken = tokens >= 1
        self._tokens[name] = (tokens - taken, now)
        return 0.0 if taken else (1 - tokens) / per_s
