"""A client that costs next to nothing, so that what it measures is the service.

A hundred of them run in one process beside the service; with a full HTTP library that process would need
more of the processor than the service does.
"""

import asyncio
from types import TracebackType
from urllib.parse import urlsplit


class Poller:
    """One connection that asks for paths, one after the other.

    Args:
        url: of the service.
        key: API key.
    """

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {key}\r\n\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> bytes:
        """The body of a reply with status 200.

        Raises:
            RuntimeError: the status is another.
        """
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(f"GET {path} HTTP/1.1\r\n{self._head}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status, *lines = head.split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines if line)
        body = await reader.readexactly(int(fields["content-length"]))
        if status.split()[1] != "200":
            raise RuntimeError(f"{status}: {body[:300]!r}")
        return body

    async def __aenter__(self) -> "Poller":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._streams is not None:
            self._streams[1].close()
