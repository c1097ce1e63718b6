"""The tools of `warpsmith.extensions.clients.mcp` at `/mcp`, for agents that have an API key.

A tool asks this API in its own process, with the key of whoever calls the tool: scopes, tenants and limits
hold as they do for any request. No session is kept, so that any API process may answer. The library takes
most of a second to import, which waits for the first request.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"


class AgentDoor:
    """MCP application at `PATH`, opened by its first request; absent if the library is not installed."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._wanted, self._closing = asyncio.Event(), asyncio.Event()
        self._opened: asyncio.Future[ASGIApp] | None = None
        if find_spec("mcp") is not None:
            app.router.routes.append(Route(PATH, endpoint=self))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first one waits until the library is there."""
        assert self._opened is not None, "requests come while it is open"
        self._wanted.set()
        await (await asyncio.shield(self._opened))(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While the API runs."""
        self._wanted, self._closing = asyncio.Event(), asyncio.Event()
        self._opened = asyncio.get_running_loop().create_future()
        # The library's own tasks end in the task in which they began, which may be no request's.
        serving = asyncio.create_task(self._serve(self._opened))
        try:
            yield
        finally:
            self._closing.set()
            self._wanted.set()
            await serving

    async def _serve(self, opened: "asyncio.Future[ASGIApp]") -> None:
        await self._wanted.wait()
        if self._closing.is_set():
            opened.cancel()
            return
        try:
            server, inner = await asyncio.to_thread(_made, self._app)
        except Exception as exc:  # noqa: BLE001  told to whoever asks
            opened.set_exception(exc)
            return
        async with server.session_manager.run():
            opened.set_result(inner)
            await self._closing.wait()


def _made(app: Any) -> tuple[Any, ASGIApp]:
    """The server of the tools, and what answers for it."""
    from mcp.server.transport_security import TransportSecuritySettings

    from warpsmith.extensions.clients.mcp.inside_client import InsideClient
    from warpsmith.extensions.clients.mcp.server import make_server

    server = make_server(lambda ctx: InsideClient(app, ctx.headers or {}))
    inner: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        # The gate stands before it: a key, or on a loopback without keys the host's name.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return server, inner
