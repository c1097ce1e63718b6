"""A client of this very process."""

from collections.abc import Mapping
from typing import Any

import httpx2

from warpsmith.extensions.clients.client import AsyncClient
from warpsmith.extensions.clients.client.call import Answer
from warpsmith.extensions.clients.client.patience import LongPolls
from warpsmith.extensions.clients.client.request import Reply, Request
from warpsmith.extensions.clients.client.transport import CONNECTIONS

HERE = "http://127.0.0.1"
KEPT = ("authorization", "traceparent")
"""Headers of a request that are sent on."""


class InsideClient(AsyncClient):
    """Sends requests to an application without a network, with the key of another request.

    Args:
        headers: those of the request whose key is used.
    """

    def __init__(self, app: Any, headers: Mapping[str, str]) -> None:
        kept = {name: headers[name] for name in KEPT if name in headers}
        transport = httpx2.ASGITransport(app=app)
        self._http = httpx2.AsyncClient(transport=transport, base_url=HERE, headers=kept, timeout=None)
        self._long_polls = LongPolls(CONNECTIONS)
        self.url = HERE

    async def send(self, request: Request[Answer]) -> Answer:
        """The answer to a request."""
        json = {"Content-Type": "application/json"} if request.content is not None else {}
        reply = await self._http.request(
            request.method,
            request.path,
            content=request.content,
            headers={**json, **request.headers},
            params=list(request.params),
        )
        got = Reply(reply.status_code, reply.content, reply.headers.get("ETag", ""))
        return request.answer(got, self.url)

    async def close(self) -> None:
        """Close what it holds."""
        await self._http.aclose()
