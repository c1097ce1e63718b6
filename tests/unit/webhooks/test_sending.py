"""One attempt, against real receivers that behave and that do not."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S, stretched
from testbed.receivers import receiving
from warpsmith.system.addresses import Allowed
from warpsmith.webhooks.sending import REPLY_BYTES, WebhookSender

HERE = Allowed.of("127.0.0.1/32")


def test_what_arrives_is_what_was_sent() -> None:
    with receiving() as receiver:
        reply = WebhookSender(HERE).post(receiver.url, {"Webhook-Id": "x"}, b"body")
    assert (reply.status, reply.error, reply.ok) == (204, "", True)
    (got,) = receiver.got
    assert (got.path, got.body, got.headers["Webhook-Id"]) == ("/hook?a=b", b"body", "x")
    assert got.headers["Host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize(("status", "error"), [(500, "HTTP 500"), (404, "HTTP 404"), (410, "HTTP 410")])
def test_a_refusal(status: int, error: str) -> None:
    with receiving(status) as receiver:
        reply = WebhookSender(HERE).post(receiver.url, {}, b"")
    assert (reply.status, reply.error, reply.gone) == (status, error, status == 410)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiving() as other:

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Location", other.url)
            handler.end_headers()

        with receiving(redirect) as receiver:
            reply = WebhookSender(HERE).post(receiver.url, {}, b"")
    assert reply.status == status
    assert "not followed" in reply.error
    assert other.got == []


def test_the_host_is_resolved_once_and_the_connection_goes_to_what_was_checked() -> None:
    """A name that first has a public address and then a private one finds no second look-up to use."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with receiving() as receiver:
        reply = WebhookSender(HERE, rebinding).post(f"http://rebound.example:{receiver.port}/", {}, b"")
    assert reply.ok
    assert asked == ["rebound.example"]
    assert receiver.got[0].headers["Host"] == f"rebound.example:{receiver.port}"


def test_a_host_that_was_public_when_it_was_made_is_checked_again() -> None:
    answers = [["8.8.8.8"], ["127.0.0.1"]]
    with receiving() as receiver:
        sender = WebhookSender(Allowed(), lambda host, port: answers.pop(0))
        sender.check(f"http://rebound.example:{receiver.port}/", 60)
        reply = sender.post(f"http://rebound.example:{receiver.port}/", {}, b"")
    assert reply.status is None
    assert "the URL was refused" in reply.error
    assert receiver.got == []


def test_the_second_address_is_tried_if_nobody_listens_at_the_first() -> None:
    with receiving() as receiver:
        sender = WebhookSender(Allowed.of("127.0.0.0/8"), lambda host, port: ["127.0.0.9", "127.0.0.1"])
        assert sender.post(receiver.url, {}, b"").ok


def test_nobody_listens() -> None:
    with receiving() as receiver:
        pass
    reply = WebhookSender(HERE).post(receiver.url, {}, b"")
    assert (reply.status, reply.error) == (None, "the connection was refused")


def _drip(handler: BaseHTTPRequestHandler) -> None:
    """A header without end, a byte at a time: each arrives in time, the whole never."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"x")
        time.sleep(0.05)


def _drip_body(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        handler.wfile.write(b"x")
        time.sleep(0.05)


def _say_nothing(handler: BaseHTTPRequestHandler) -> None:
    handler.rfile.read(1)


def _continue_for_ever(handler: BaseHTTPRequestHandler) -> None:
    while True:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


@pytest.mark.parametrize("answer", [_drip, _say_nothing, _continue_for_ever])
def test_a_slow_receiver_is_left_in_time(answer: object) -> None:
    with receiving(answer) as receiver:  # type: ignore[arg-type]
        began_s = time.monotonic()
        reply = WebhookSender(HERE, timeout_s=0.5).post(receiver.url, {}, b"")
        took_s = time.monotonic() - began_s
    assert (reply.status, reply.error) == (None, "no answer within 0.5 s")
    assert 0.4 < took_s < stretched(5)


def test_a_slow_body_is_left_and_its_status_counts() -> None:
    with receiving(_drip_body) as receiver:
        began_s, limit_s = time.monotonic(), stretched(0.5)
        assert WebhookSender(HERE, timeout_s=limit_s).post(receiver.url, {}, b"").status == 200
        assert time.monotonic() - began_s < 10 * limit_s


def test_no_more_of_a_reply_is_read_than_the_limit() -> None:
    written: list[int] = []
    ended = threading.Event()

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                written.append(handler.connection.send(b"x" * 65536))
        except OSError:
            ended.set()

    with receiving(flood) as receiver:
        assert WebhookSender(HERE).post(receiver.url, {}, b"").status == 200
        assert ended.wait(HANGS_S), "the receiver could send as much as it liked"
    assert REPLY_BYTES == 4096
    assert sum(written) < 64 << 20


def test_a_slow_look_up_is_left_in_time() -> None:
    ended = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        ended.wait(HANGS_S)
        return ["127.0.0.1"]

    began_s = time.monotonic()
    reply = WebhookSender(HERE, slow, timeout_s=0.3).post("http://slow.example/", {}, b"")
    ended.set()
    assert (reply.status, reply.error) == (None, "no answer within 0.3 s")
    assert time.monotonic() - began_s < stretched(5)


def test_what_is_no_http() -> None:
    def noise(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"SSH-2.0-secret\r\n")

    with receiving(noise) as receiver:
        reply = WebhookSender(HERE).post(receiver.url, {}, b"")
    assert (reply.status, reply.error) == (None, "the answer is not HTTP")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for receiver.example, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += [
        "-days",
        "2",
        "-subj",
        "/CN=receiver.example",
        "-addext",
        "subjectAltName=DNS:receiver.example",
    ]
    command += ["-keyout", str(made), "-out", str(made.with_suffix(".crt"))]
    subprocess.run(command, check=True, capture_output=True)
    made.write_bytes(made.read_bytes() + made.with_suffix(".crt").read_bytes())
    return made


@contextmanager
def _secure(certificate: Path) -> Iterator[tuple[int, list[str | None], ssl.SSLContext]]:
    """A receiver's port, the names that its clients asked for, and a client's trust in it."""
    named: list[str | None] = []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.sni_callback = lambda _socket, name, _context: named.append(name)
    with receiving(tls=tls) as receiver:
        yield receiver.port, named, ssl.create_default_context(cafile=certificate.with_suffix(".crt"))


def test_a_certificate_is_checked_against_the_name_though_the_connection_goes_to_an_address(
    certificate: Path,
) -> None:
    with _secure(certificate) as (port, named, trusts):
        sender = WebhookSender(HERE, lambda host, port: ["127.0.0.1"], tls=trusts)
        assert sender.post(f"https://receiver.example:{port}/", {}, b"").ok
        assert named == ["receiver.example"]
        reply = sender.post(f"https://other.example:{port}/", {}, b"")
        assert reply.status is None
        assert "certificate was refused" in reply.error
        assert "mismatch" in reply.error
        reply = WebhookSender(HERE, lambda host, port: ["127.0.0.1"]).post(
            f"https://receiver.example:{port}/", {}, b""
        )
        assert "certificate was refused" in reply.error


def test_a_handshake_without_end_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began_s = time.monotonic()
        reply = WebhookSender(HERE, timeout_s=0.5).post(f"https://127.0.0.1:{port}/", {}, b"")
        assert (reply.status, reply.error) == (None, "no answer within 0.5 s")
        assert time.monotonic() - began_s < stretched(5)
