"""Both clients, asked alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from testbed.deadlines import HANGS_S
from warpsmith.extensions.clients.client import AsyncClient, Client

KINDS = ("Client", "AsyncClient")


def ask(kind: str, url: str, key: str | None, method: str, *args: Any, **named: Any) -> Any:
    """What a method of one of the clients gives; a list, if it iterates."""
    if kind == "Client":
        with Client(url, key) as client:
            found = getattr(client, method)(*args, **named)
            return list(found) if isinstance(found, Iterator) else found

    async def asked() -> Any:
        async with AsyncClient(url, key) as client:
            found = getattr(client, method)(*args, **named)
            return [x async for x in found] if isinstance(found, AsyncIterator) else await found

    return asyncio.run(asyncio.wait_for(asked(), HANGS_S))
