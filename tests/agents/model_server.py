"""A local server with OpenAI's chat completions over real HTTP: answers from a script, fails on demand."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
DRIP_S = 0.05


@dataclass
class Turn:
    """What the server does with one request."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    raw: bytes | None = None
    """Sent as the body instead of a completion."""
    calls: Sequence[tuple[str, str]] = ()
    """Functions that the reply calls, with their arguments."""
    usage: tuple[int, int] | None = (100, 50)
    kept: tuple[int, int] | None = None
    """Tokens of the prompt that were kept, and that are kept from now on."""
    finish: str = "stop"
    message: str = "as the test asked"
    drip_s: float = 0.0
    """Keep the line open with a space now and then for so long before the body."""
    hang_up: bool = False
    """Close the connection without an answer."""


Script = Callable[[Body, int], Turn]
"""From the request and its number to what happens."""


@dataclass
class ModelServer:
    """What the server has seen and charged for."""

    script: Script
    requests: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    billed_tokens: int = 0
    """Of every completion that was made, delivered or not."""
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        """Requests so far."""
        return len(self.requests)

    def take(self, body: Body, key: str) -> Turn:
        """The next turn of the script."""
        with self.lock:
            self.requests.append(body)
            self.keys.append(key)
            turn = self.script(body, len(self.requests) - 1)
            if turn.status == 200 and turn.usage is not None:
                self.billed_tokens += sum(turn.usage)
            return turn


@contextmanager
def model_server(script: Script) -> Iterator[ModelServer]:
    """A server in threads of the test."""
    state = ModelServer(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions", self.path
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            turn = state.take(body, self.headers.get("Authorization", ""))
            time.sleep(turn.delay_s)
            if turn.hang_up:
                self.close_connection = True
                return
            try:
                self._answer(turn)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self, turn: Turn) -> None:
            if turn.raw is not None:
                payload = turn.raw
            elif turn.status != 200:
                payload = json.dumps({"error": {"message": turn.message}}).encode()
            else:
                payload = json.dumps(completion(turn)).encode()
            self.send_response(turn.status)
            for name, value in {"Content-Type": "application/json", **turn.headers}.items():
                self.send_header(name, value)
            spaces = int(turn.drip_s / DRIP_S)
            self.send_header("Content-Length", str(spaces + len(payload)))
            self.end_headers()
            for _ in range(spaces):
                time.sleep(DRIP_S)
                self.wfile.write(b" ")
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="model")
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(turn: Turn) -> Body:
    """A chat completion as OpenAI's servers send it."""
    usage: Body | None = None
    if turn.usage is not None:
        prompt, reply = turn.usage
        usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
        if turn.kept is not None:
            cached, written = turn.kept
            usage["prompt_tokens_details"] = {"cached_tokens": cached, "cache_write_tokens": written}
    message: Body = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {"id": f"x{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(turn.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": turn.finish}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return answer | ({"usage": usage} if usage else {})


def in_order(*turns: Turn) -> Script:
    """One turn after the other; the last one again and again."""
    return lambda body, number: turns[min(number, len(turns) - 1)]
