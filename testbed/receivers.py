"""Receivers of webhooks: real HTTP servers in threads, which answer as a test wants."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A running receiver, and what it got."""

    port: int
    answers: list[int | Answer]
    """How to answer the next requests: a status, or a function that writes the reply. Then 204."""
    got: list[Received] = field(default_factory=list)
    at_once: int = 0
    """Largest number of requests at a time."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook?a=b"


@contextmanager
def receiving(*answers: int | Answer, tls: SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on 127.0.0.1."""
    lock, busy = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                busy[0] += 1
                receiver.at_once = max(receiver.at_once, busy[0])
                receiver.got.append(Received(self.path, dict(self.headers), body))
                answer = receiver.answers.pop(0) if receiver.answers else 204
            try:
                if callable(answer):
                    answer(self)
                else:
                    self.send_response(answer)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
            finally:
                with lock:
                    busy[0] -= 1

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Nothing: clients of tests leave early."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(server.server_address[1], list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
