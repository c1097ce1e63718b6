"""The outbox and its relay, on the file-system transport and on Redis."""

import base64
import bz2
import json
import lzma
import zlib
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu.exceptions import ContentDisallowed
from kombu.message import Message

from db.engine import Database
from db.queue.broker import Notifier, celery_app, relay
from db.repositories.outbox import OutboxRepository
from testbed.rows import add_job
from testbed.servers import free_port
from warpsmith.settings import Settings


def _messages(folder: Path) -> list[Path]:
    return list((folder / "broker" / "messages").glob("*.control.msg"))


def test_the_relay_publishes_each_message_once(database: Database, tmp_path: Path) -> None:
    notifier = Notifier(Settings(data_dir=tmp_path))
    with database.write() as session:
        ids = [add_job(session).id for _ in range(3)]
        OutboxRepository(session).prune(older_s=-1)
    assert relay(database, notifier) == 3, "what waits is not deleted, however old"
    assert relay(database, notifier) == 0
    notifier.close()
    texts = [path.read_text() for path in _messages(tmp_path)]
    assert len(texts) == 3
    with database.write() as session:
        outbox = OutboxRepository(session)
        assert not outbox.any_waiting()
        outbox.prune(older_s=-1)
    assert len(ids) == 3


def test_a_broker_that_is_away_loses_nothing(database: Database, redis_url: str) -> None:
    with database.write() as session:
        add_job(session)
    away = Notifier(Settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    assert relay(database, away) == 0
    away.close()
    with database.read() as session:
        assert OutboxRepository(session).any_waiting()
    back = Notifier(Settings(broker_url=redis_url))
    assert relay(database, back) == 1
    back.close()
    client = redis.Redis.from_url(redis_url)
    try:
        assert client.llen("control") == 1
    finally:
        client.close()


def test_a_message_carries_an_id_and_nothing_else(database: Database, tmp_path: Path) -> None:
    notifier = Notifier(Settings(data_dir=tmp_path))
    with database.write() as session:
        job_id = add_job(session).id
    relay(database, notifier)
    notifier.close()
    (message,) = _messages(tmp_path)
    envelope = json.loads(message.read_text())
    assert envelope["headers"]["task"] == "warpsmith.advance"
    arguments, keywords, _ = json.loads(base64.b64decode(envelope["body"]))
    assert (arguments, keywords) == ([job_id], {})


@pytest.mark.parametrize("count", [120])
def test_a_long_outbox_is_published_in_parts_and_in_order(
    database: Database, tmp_path: Path, count: int
) -> None:
    notifier = Notifier(Settings(data_dir=tmp_path))
    with database.write() as session:
        for _ in range(count):
            OutboxRepository(session).add_advance("job")
    assert [relay(database, notifier) for _ in range(4)] == [50, 50, 20, 0]
    notifier.close()


def made_message(body: bytes, kind: str, **given: Any) -> Any:
    """A message as a broker hands it over."""
    make: Any = Message
    return make(body=body, content_type=kind, content_encoding="utf-8", **given)


@pytest.mark.parametrize("kind", ["bzip2", "gzip", "lzma"])
def test_a_compressed_message_is_not_unpacked(tmp_path: Path, kind: str) -> None:
    celery_app(Settings(data_dir=tmp_path))
    headers = {"compression": kind}
    packers: dict[str, Any] = {"bzip2": bz2.compress, "gzip": zlib.compress, "lzma": lzma.compress}
    packed = packers[kind](b"0" * 10**6)
    message: Any = made_message(packed, "application/json", headers=headers)
    assert message.body == packed
    assert "compressed messages are refused" in str(message.errors)


@pytest.mark.parametrize("kind", ["application/x-python-serialize", "application/x-yaml", "text/plain"])
def test_nothing_but_json_is_read(tmp_path: Path, kind: str) -> None:
    accepted = celery_app(Settings(data_dir=tmp_path)).conf.accept_content
    message: Any = made_message(b"x", kind, accept=accepted)
    with pytest.raises(ContentDisallowed):
        message.decode()


def test_what_the_embedded_mode_keeps_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    Database(Settings(data_dir=folder, _env_file=None).sqlalchemy_url).dispose()
    Notifier(Settings(data_dir=folder)).close()
    database = folder / "warpsmith.db"
    assert [oct(p.stat().st_mode & 0o777) for p in (folder, folder / "broker", database)] == [
        "0o700",
        "0o700",
        "0o600",
    ]
    database.chmod(0o644)
    Database(Settings(data_dir=folder, _env_file=None).sqlalchemy_url).dispose()
    assert database.stat().st_mode & 0o777 == 0o600
