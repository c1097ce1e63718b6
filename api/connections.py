"""Limits on connections: how many there are, and how long one may take to send a request."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_CONNECTIONS = 1000
"""Limit on open connections; further ones are closed at once."""
HEADERS_S = 10.0
"""Seconds within which a request's headers must arrive, from its first byte or the connection's start."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # uvicorn picks the class at run time
    """uvicorn's protocol, which ends connections that send half a request and then nothing."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Take data; whoever has not sent all headers by now has the rest of its time for them."""
        known = self.cycle
        super().data_received(data)
        if self.cycle is not known or not self._is_idle():
            self._wait_no_more()
        elif self._late is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self) -> None:
        self._late = asyncio.get_running_loop().call_later(HEADERS_S, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def serve(app: Any, host: str, port: int) -> None:
    """Serve the application until SIGTERM or SIGINT."""
    uvicorn.run(
        app, host=host, port=port, log_level="warning", server_header=False, http=PatientProtocol, ws="none"
    )
