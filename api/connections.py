"""Limits on connections: how many there are, and how long one may take to send a request."""

import asyncio
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_CONNECTIONS = 1000
"""Limit on open connections; further ones are closed at once."""
CANNOT_START = 3
"""Exit status of a server that could not start, as uvicorn's own command has it."""
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


class StreamingServer(uvicorn.Server):
    """uvicorn's server, which ends streams of events when it is told to stop; it would wait for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, after the requests that are being served."""
        application: Any = self.config.app
        # It has none if it could not start.
        if hasattr(application.state, "broadcaster"):
            application.state.broadcaster.close()
        await super().shutdown(sockets)


def make_server(app: FastAPI, host: str, port: int, log_level: str = "warning") -> StreamingServer:
    """A server of the application.

    Args:
        port: 0: any that is free.
    """
    return StreamingServer(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level=log_level,
            server_header=False,
            http=PatientProtocol,
            ws="none",
        )
    )


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve the application until SIGTERM or SIGINT.

    Raises:
        SystemExit: it could not start.
    """
    server = make_server(app, host, port)
    # It raises a SIGINT again once it has stopped.
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(CANNOT_START)
