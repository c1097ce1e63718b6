"""The size limit on request bodies, enforced while they arrive."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import TooLarge, problem

MAX_BODY_BYTES = 1 << 20


class BodyLimit:
    """Middleware that stops reading at the limit, whatever Content-Length says."""

    def __init__(self, app: ASGIApp, limit_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, counting."""
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
