"""Limits on requests: their size and time, enforced while they arrive, and their rate."""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.requests.problems import TooLarge, TooSlow, problem

MAX_BODY_BYTES = 1 << 20
BODY_S = 20.0
"""Seconds within which the body of a request must arrive."""
BURST_S = 2.0
"""Seconds of its rate that an idle caller may send at once."""
MAX_BUCKETS = 10_000


class BodyLimit:
    """Middleware that stops reading at the limit, whatever Content-Length says, and when the time is up."""

    def __init__(self, app: ASGIApp, limit_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request and count its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen, whole = 0, False
        deadline = asyncio.get_running_loop().time() + BODY_S
        text = f"a request may have {self._limit_bytes} bytes"

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise TooSlow from None
            whole = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self._limit_bytes:
                raise TooLarge(text)
            return message

        try:
            await self._app(scope, counted, send)
        except TooLarge:
            await problem(413, "Body too large", text)(scope, receive, send)
        except TooSlow as exc:
            await problem(408, "Too slow", exc.detail)(scope, receive, send)


class Buckets:
    """Token buckets by name, in this process: each fills at its rate and holds `BURST_S` seconds of it."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float, float]] = {}
        """Tokens, when they were counted, and the rate at which they come."""

    def take(self, name: str, per_s: float, most: float | None = None) -> float:
        """Take a token: returns 0, or the seconds until one is available.

        Args:
            most: what a bucket holds, if it is not `BURST_S` seconds of its rate.
        """
        now = time.monotonic()
        most = max(1.0, per_s * BURST_S if most is None else most)
        if len(self._buckets) >= MAX_BUCKETS and name not in self._buckets:
            self._make_room()
        tokens, at, _ = self._buckets.get(name, (most, now, per_s))
        tokens = min(most, tokens + (now - at) * per_s)
        taken = tokens >= 1
        self._buckets[name] = (tokens - taken, now, per_s)
        return 0.0 if taken else (1 - tokens) / per_s

    def lacks(self, name: str) -> float:
        """Seconds until a token is available; takes none."""
        tokens, at, per_s = self._buckets.get(name, (1.0, 0.0, 1.0))
        return max(0.0, (1 - tokens) / per_s - (time.monotonic() - at)) if tokens < 1 else 0.0

    def _make_room(self) -> None:
        """Forget the buckets that are least empty, and so matter least."""
        kept = sorted(self._buckets.items(), key=lambda item: self.lacks(item[0]), reverse=True)
        self._buckets = dict(kept[: MAX_BUCKETS // 2])
