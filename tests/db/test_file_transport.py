"""The embedded broker's messages are whole, come once and in order, between many processes."""

import multiprocessing
import time
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu.connection import Connection

from db.queue.broker import celery_app
from db.queue.file_transport import MAX_CHARACTERS
from testbed.deadlines import HANGS_S
from warpsmith.settings import Settings

WRITERS, READERS = 3, 3
MESSAGES = 3000
"""Those of a thousand jobs: each has a planning, a slice or more, and an end."""
LENGTH = 6000
CONTEXT = multiprocessing.get_context("spawn")


def _connection(folder: Path) -> Connection:
    connection: Connection = celery_app(Settings(data_dir=folder)).connection_for_write()
    return connection


def _write(folder: Path, writer: int, count: int) -> None:
    with _connection(folder) as connection:
        channel: Any = connection.default_channel
        for number in range(count):
            channel._put("control", {"writer": writer, "number": number, "text": "x" * LENGTH})


def _read(folder: Path, stop: Any, answers: Any) -> None:
    seen: list[tuple[int, int]] = []
    fault = ""
    with _connection(folder) as connection:
        channel: Any = connection.default_channel
        try:
            while True:
                done = stop.is_set()
                try:
                    message = channel._get("control")
                except Empty:
                    if done:
                        break
                    time.sleep(0.001)
                    continue
                assert len(message["text"]) == LENGTH
                seen.append((message["writer"], message["number"]))
        except Exception as exc:  # noqa: BLE001 - the parent asserts on it
            fault = repr(exc)
    answers.put((seen, fault))


@pytest.mark.slow
def test_messages_of_a_thousand_jobs_come_whole_and_once(tmp_path: Path) -> None:
    stop, answers = CONTEXT.Event(), CONTEXT.Queue()
    each = MESSAGES // WRITERS
    readers = [CONTEXT.Process(target=_read, args=(tmp_path, stop, answers)) for _ in range(READERS)]
    writers = [CONTEXT.Process(target=_write, args=(tmp_path, w, each)) for w in range(WRITERS)]
    for process in (*readers, *writers):
        process.start()
    for process in writers:
        process.join(HANGS_S)
        assert process.exitcode == 0
    stop.set()
    found = [answers.get(timeout=HANGS_S) for _ in readers]
    for process in readers:
        process.join(HANGS_S)
    assert [fault for _, fault in found] == [""] * READERS
    seen = [message for messages, _ in found for message in messages]
    assert sorted(seen) == [(w, n) for w in range(WRITERS) for n in range(each)]
    for messages, _ in found:
        # To one reader, those of one writer come in the order in which they were written.
        for writer in range(WRITERS):
            numbers = [n for w, n in messages if w == writer]
            assert numbers == sorted(numbers)
    assert list((tmp_path / "broker" / "messages").iterdir()) == []


def test_a_message_has_its_name_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "broker" / "messages"
    seen: list[list[str]] = []
    write = Path.write_text

    def watched(path: Path, text: str) -> int:
        written = write(path, text[: len(text) // 2])
        seen.append([path.name for path in folder.glob("*.msg")])
        with pytest.raises(Empty):
            channel._get("control")
        return written + write(path, text)

    with _connection(tmp_path) as connection:
        channel: Any = connection.default_channel
        monkeypatch.setattr(Path, "write_text", watched)
        channel._put("control", {"a": 1})
        assert seen == [[]]
        assert channel._size("control") == 1
        assert channel._get("control") == {"a": 1}


def test_queues_are_apart_and_can_be_emptied(tmp_path: Path) -> None:
    with _connection(tmp_path) as connection:
        channel: Any = connection.default_channel
        for queue, number in (("gpu", 1), ("control", 2), ("gpu", 3)):
            channel._put(queue, number)
        assert channel._get("control") == 2
        with pytest.raises(Empty):
            channel._get("control")
        assert [channel._get("gpu"), channel._size("gpu")] == [1, 1]
        assert channel._purge("gpu") == 1


def test_an_exchanges_table_keeps_each_binding_once(tmp_path: Path) -> None:
    with _connection(tmp_path) as connection:
        channel: Any = connection.default_channel
        for queue in ("control", "gpu", "control"):
            channel._queue_bind("messages", queue, "", queue)
        assert sorted(row.queue for row in channel.get_table("messages")) == ["control", "gpu"]
        channel._put("gpu", 1)
        channel._delete("gpu", "messages", "gpu", "")
        assert [row.queue for row in channel.get_table("messages")] == ["control"]
        assert channel._size("gpu") == 0


def test_a_message_that_is_too_long_is_dropped(tmp_path: Path) -> None:
    with _connection(tmp_path) as connection:
        channel: Any = connection.default_channel
        channel._put("control", {"text": "x" * MAX_CHARACTERS})
        channel._put("control", {"text": "y"})
        assert channel._get("control") == {"text": "y"}
        with pytest.raises(Empty):
            channel._get("control")
