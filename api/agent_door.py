"""The tools of `warpsmith.for_agents` at `/mcp`, for agents that have an API key.

A tool asks this API in its own process, with the key of whoever calls the tool: scopes, tenants and limits
hold as they do for any request. No session is kept, so that any API process may answer.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

PATH = "/mcp"


class AgentDoor:
    """What answers at `PATH`; nothing if the library is not installed."""

    def __init__(self, app: Any) -> None:
        self._server: Any = None
        if find_spec("mcp") is None:
            return
        from mcp.server.transport_security import TransportSecuritySettings

        from api.inside_client import InsideClient
        from warpsmith.for_agents.server import make_server

        self._server = make_server(lambda ctx: InsideClient(app, ctx.headers or {}))
        inner = self._server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            # The gate stands before it: a key, or on a loopback without keys the host's name.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        app.router.routes.extend(inner.routes)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While the API runs."""
        if self._server is None:
            yield
            return
        async with self._server.session_manager.run():
            yield
