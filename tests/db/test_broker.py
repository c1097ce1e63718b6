"""The outbox and its relay, on the file-system transport and on Redis."""

import base64
import json
from pathlib import Path

import pytest
import redis

from db.broker import Bell, relay
from db.engine import Database
from db.repositories.outbox import OutboxRepository
from testbed.rows import add_job
from testbed.servers import free_port
from warpsmith.settings import Settings


def _messages(folder: Path) -> list[Path]:
    return list((folder / "broker" / "messages").glob("*.control.msg"))


def test_the_relay_rings_each_bell_once(database: Database, tmp_path: Path) -> None:
    bell = Bell(Settings(data_dir=tmp_path))
    with database.write() as session:
        ids = [add_job(session).id for _ in range(3)]
    assert relay(database, bell) == 3
    assert relay(database, bell) == 0
    bell.close()
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
    away = Bell(Settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    assert relay(database, away) == 0
    away.close()
    with database.read() as session:
        assert OutboxRepository(session).any_waiting()
    back = Bell(Settings(broker_url=redis_url))
    assert relay(database, back) == 1
    back.close()
    client = redis.Redis.from_url(redis_url)
    try:
        assert client.llen("control") == 1
    finally:
        client.close()


def test_a_message_carries_an_id_and_nothing_else(database: Database, tmp_path: Path) -> None:
    bell = Bell(Settings(data_dir=tmp_path))
    with database.write() as session:
        job_id = add_job(session).id
    relay(database, bell)
    bell.close()
    (message,) = _messages(tmp_path)
    envelope = json.loads(message.read_text())
    assert envelope["headers"]["task"] == "warpsmith.advance"
    arguments, keywords, _ = json.loads(base64.b64decode(envelope["body"]))
    assert (arguments, keywords) == ([job_id], {})


@pytest.mark.parametrize("count", [120])
def test_a_long_outbox_is_rung_in_parts_and_in_order(database: Database, tmp_path: Path, count: int) -> None:
    bell = Bell(Settings(data_dir=tmp_path))
    with database.write() as session:
        for _ in range(count):
            OutboxRepository(session).add_advance("job")
    assert [relay(database, bell) for _ in range(4)] == [50, 50, 20, 0]
    bell.close()
