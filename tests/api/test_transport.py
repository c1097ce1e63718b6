"""What lies between a client and its service: connections, proxies, threads, and servers that misbehave."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testbed.api_service import Service
from testbed.deadlines import HANGS_S, comes_true
from testbed.stages import ended
from tests.api.clients import KINDS, ask
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.extensions.clients.client import AsyncClient, Client, async_client, transport
from warpsmith.http_models import Health
from warpsmith.testing.jobs import scale_job

ROOT = Path(__file__).resolve().parents[2]
HEALTH = Health(status="ok", version="1").model_dump_json().encode()
WAITS = 50


class Server:
    """A server of a test, which sees every request.

    Args:
        reply: status, headers and body for a path; None: the connection is closed.
    """

    def __init__(self, reply: Callable[[str], tuple[int, dict[str, str], bytes] | None]) -> None:
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[object] = set()
        seen = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen.paths.append(self.path)
                seen.headers.append({name.lower(): value for name, value in self.headers.items()})
                seen.connections.add(self.client_address)
                found = reply(self.path)
                if found is None:
                    self.close_connection = True
                    return
                status, headers, content = found
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"127.0.0.1:{self.http.server_port}"
        self.url = f"http://{self.address}"


@contextmanager
def served(reply: Callable[[str], tuple[int, dict[str, str], bytes] | None]) -> Iterator[Server]:
    server = Server(reply)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join()
        server.http.socket.close()


def healthy(path: str) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, HEALTH


@contextmanager
def hanging() -> Iterator[tuple[Server, threading.Event]]:
    """A server that replies once the event is set."""
    free = threading.Event()

    def reply(path: str) -> tuple[int, dict[str, str], bytes]:
        free.wait(HANGS_S)
        return healthy(path)

    with served(reply) as server:
        try:
            yield server, free
        finally:
            free.set()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# Servers that misbehave.


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_does_not_follow_a_redirect(kind: str) -> None:
    with served(healthy) as other, served(lambda path: (302, {"Location": other.url + path}, b"")) as server:
        with pytest.raises(Unavailable, match="does not answer as Warpsmith does: HTTP 302"):
            ask(kind, server.url, "ws_key", "health")
        assert server.headers[0]["authorization"] == "Bearer ws_key"
        assert other.paths == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_redirect_of_a_text_is_no_text(kind: str) -> None:
    with (
        served(lambda path: (302, {"Location": "/elsewhere"}, b"moved")) as server,
        pytest.raises(Unavailable, match="HTTP 302"),
    ):
        ask(kind, server.url, None, "metrics")


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_not_repeated(kind: str) -> None:
    with served(lambda path: None) as server:
        with pytest.raises(Unavailable, match="does not answer: Remote end closed connection"):
            ask(kind, server.url, None, "health")
        assert server.paths == ["/healthz"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_that_does_not_come_is_not_awaited_for_ever(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TIMEOUT_S", 0.2)
    with (
        hanging() as (server, _),
        pytest.raises(Unavailable, match=f"{server.url} does not answer: timed out"),
    ):
        ask(kind, server.url, None, "health")


# Addresses, keys and proxies.


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8765", "ftp://host", "http://", "http://[::1", "http://host:99999"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidInput, match="must be as http://127"):
            kind(url)


@pytest.mark.parametrize("key", ["ws_key\n", "ws_kéy"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("http://127.0.0.1:1", key)
    assert caught.value.field == "API key"
    assert "ws_" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_an_idempotency_key_that_no_header_can_hold_is_refused(kind: str) -> None:
    with pytest.raises(InvalidInput, match="Idempotency-Key: must be ASCII"):
        ask(kind, "http://127.0.0.1:1", None, "submit", scale_job(), "é")


def test_a_service_may_lie_below_a_path_and_want_a_password() -> None:
    with served(healthy) as server:
        assert ask("Client", f"http://me:a%20b@{server.address}/tuning/", None, "health").version == "1"
        assert server.paths == ["/tuning/healthz"]
        assert server.headers[0]["authorization"] == "Basic bWU6YSBi"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_used(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(healthy) as proxy:
        monkeypatch.setenv(name.lower(), f"http://me:secret@{proxy.address}")
        assert ask(kind, "http://service.invalid", None, "health").version == "1"
        assert proxy.paths == ["http://service.invalid/healthz"]
        assert proxy.headers[0]["proxy-authorization"] == "Basic bWU6c2VjcmV0"


def test_a_proxy_is_not_used_where_it_should_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(healthy) as proxy, served(healthy) as server:
        monkeypatch.setenv("http_proxy", proxy.address)
        assert ask("Client", server.url, None, "health").version == "1"
        monkeypatch.setenv("no_proxy", ".invalid")
        with pytest.raises(Unavailable):
            ask("Client", "http://service.invalid", None, "health")
        assert (len(server.paths), proxy.paths) == (1, [])


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(Unavailable, match="must be as http://HOST:PORT"):
        Client("http://service.invalid")


# Connections.


def test_a_connection_is_used_again_unless_it_was_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(healthy) as server, Client(server.url) as client:
        monkeypatch.setattr(transport, "IDLE_S", HANGS_S)
        client.health(), client.health()
        assert len(server.connections) == 1
        monkeypatch.setattr(transport, "IDLE_S", -1.0)
        client.health()
        assert len(server.connections) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_client_sends_nothing(kind: str) -> None:
    async def asked() -> None:
        client = AsyncClient("http://127.0.0.1:1")
        await client.close()
        await client.health()

    with pytest.raises(RuntimeError, match="the client is closed"):
        if kind == "AsyncClient":
            asyncio.run(asked())
        with Client("http://127.0.0.1:1") as client:
            pass
        client.health()


# Many calls at a time.


def test_fifty_jobs_are_awaited_at_once(embedded: Service) -> None:
    seen: set[str] = set()

    async def waited() -> list[JobState]:
        async with AsyncClient(str(embedded.http.base_url), embedded.key) as client:
            jobs = await asyncio.gather(*(client.submit(scale_job(name=f"job {i}")) for i in range(WAITS)))
            waits = [
                asyncio.create_task(client.wait(j.id, lambda s: seen.add(s.id), every_s=0.05)) for j in jobs
            ]
            while len(seen) < WAITS:
                await asyncio.sleep(0.01)
            assert not any(wait.done() for wait in waits)
            with embedded.database.write() as session:
                for job in jobs:
                    ended(session, job.id)
            return [status.state for status in await asyncio.gather(*waits)]

    assert asyncio.run(asyncio.wait_for(waited(), HANGS_S)) == [JobState.DONE] * WAITS


def test_so_many_calls_are_sent_at_a_time_and_the_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "CONNECTIONS", 2)

    async def asked(server: Server, free: threading.Event) -> int:
        async with AsyncClient(server.url) as client:
            calls = [asyncio.create_task(client.health()) for _ in range(6)]
            while len(server.paths) < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            before = len(server.paths)
            free.set()
            await asyncio.gather(*calls)
            return before

    with hanging() as (server, free):
        assert asyncio.run(asyncio.wait_for(asked(server, free), HANGS_S)) == 2
        assert len(server.paths) == 6


def test_a_cancelled_call_ends_at_once_and_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "CONNECTIONS", 1)

    async def asked(server: Server, free: threading.Event) -> Health:
        async with AsyncClient(server.url) as client:
            sent, waiting = (asyncio.create_task(client.health()) for _ in range(2))
            while not server.paths:
                await asyncio.sleep(0.01)
            for call in (sent, waiting):
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert not free.is_set()
            free.set()
            return await client.health()

    with hanging() as (server, free):
        assert asyncio.run(asyncio.wait_for(asked(server, free), HANGS_S)).version == "1"
        assert len(server.paths) == 2, "what was cancelled before its turn was sent"


def test_threads_end_when_nothing_waits() -> None:
    def ours() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name.startswith("warpsmith-client")]

    async def asked(client: AsyncClient) -> None:
        await asyncio.gather(*(client.health() for _ in range(20)))
        await client.close()

    with served(healthy) as server:
        client = AsyncClient(server.url)
        asyncio.run(asyncio.wait_for(asked(client), HANGS_S))
        assert comes_true(lambda: not ours(), 20)
        del client  # not before: threads must not wait for that


def test_a_call_that_hangs_keeps_no_program_from_ending() -> None:
    code = (
        "import asyncio, sys\n"
        "from warpsmith.extensions.clients.client import AsyncClient, transport\n"
        "transport.TIMEOUT_S = 1e5\n"
        "async def main():\n"
        "    async with AsyncClient(sys.argv[1]) as client:\n"
        "        try: await asyncio.wait_for(client.health(), 0.5)\n"
        "        except TimeoutError: print('gave up')\n"
        "asyncio.run(main())\n"
    )
    with hanging() as (server, free):
        command = [sys.executable, "-c", code, server.url]
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS_S / 5
        )
        assert not free.is_set()
    assert (ran.returncode, ran.stdout) == (0, "gave up\n"), ran.stderr
