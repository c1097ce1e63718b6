"""Frames between parent and child: whole or an error, whatever the other end sends."""

import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.deadlines import stretched
from testbed.repetitions import examples
from warpsmith.errors import ChildDied
from warpsmith.sandbox.transport.frames import MAX_BLOB_BYTES, MAX_BLOBS, MAX_HEADER_BYTES, Channel

LIMIT = 1 << 20
LENGTH = struct.Struct(">I")


class Pair:
    """A channel and, on the other side, either another channel or raw file descriptors."""

    def __init__(self) -> None:
        here_read, self.raw_write = os.pipe()
        self.raw_read, here_write = os.pipe()
        self.here = Channel(here_read, here_write, max_reply_bytes=LIMIT)
        self._open = {self.raw_write, self.raw_read}

    def there(self) -> Channel:
        """The other side as a channel."""
        self._open.clear()
        return Channel(self.raw_read, self.raw_write, max_reply_bytes=LIMIT)

    def write(self, data: bytes) -> None:
        """Bytes as a hostile child would write them; the pipe holds them all."""
        assert os.write(self.raw_write, data) == len(data)

    def hang_up(self) -> None:
        """End as a dying child does."""
        for fd in self._open:
            os.close(fd)
        self._open.clear()

    def close(self) -> None:
        self.hang_up()
        self.here.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def soon(seconds: float = 5.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds


def frame(header: Any, blobs: Any = ()) -> bytes:
    """A frame with what its header says, true or not."""
    text = json.dumps(
        {"header": header, "blobs": list(blobs) if isinstance(blobs, tuple) else blobs}
    ).encode()
    return LENGTH.pack(len(text)) + text


def cause(receive: Callable[[], object]) -> str:
    """Why the child counts as dead."""
    with pytest.raises(ChildDied) as caught:
        receive()
    return caught.value.cause


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=10,
)


@examples(100)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(), json_values, max_size=4), st.lists(st.binary(max_size=2000))),
        min_size=1,
        max_size=3,
    )
)
def test_frames_arrive_whole_and_in_order(frames: list[tuple[dict[str, Any], list[bytes]]]) -> None:
    pair = Pair()
    there = pair.there()
    try:
        for header, blobs in frames:
            there.send(header, blobs, soon())
            pair.here.send(header, [memoryview(b) for b in blobs], soon())
            for end in (pair.here, there):
                got, parts = end.receive(soon())
                assert (got, [bytes(p) for p in parts]) == (header, blobs)
    finally:
        there.close()
        pair.close()


def test_blobs_larger_than_a_pipe_arrive(pair: Pair) -> None:
    there = pair.there()
    blobs = [os.urandom(LIMIT // 2), b"", os.urandom(LIMIT // 2)]
    sender = threading.Thread(target=there.send, args=({"kind": "reply"}, blobs, soon(20)))
    sender.start()
    header, got = pair.here.receive(soon(20))
    sender.join()
    there.close()
    assert header == {"kind": "reply"}
    assert [bytes(b) for b in got] == blobs


def test_a_memoryview_of_words_is_sent_as_bytes(pair: Pair) -> None:
    there = pair.there()
    words = memoryview(b"abcdefgh").cast("I")
    there.send({}, [words.cast("B")], soon())
    header, got = pair.here.receive(soon())
    assert (header, [bytes(b) for b in got]) == ({}, [b"abcdefgh"])
    there.close()


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 5, 20, -1])
def test_a_frame_cut_short_by_death_is_an_exit(pair: Pair, cut: int) -> None:
    whole = frame({"kind": "reply"}, (4,)) + b"1234"
    pair.write(whole[:cut])
    pair.hang_up()
    assert cause(lambda: pair.here.receive(soon())) == "exit"


@pytest.mark.parametrize("cut", [0, 3, 4, 20, -1])
def test_a_frame_that_stops_coming_is_a_timeout(pair: Pair, cut: int) -> None:
    whole = frame({"kind": "reply"}, (4,)) + b"1234"
    pair.write(whole[:cut])
    began = time.monotonic()
    assert cause(lambda: pair.here.receive(soon(0.1))) == "timeout"
    assert 0.05 < time.monotonic() - began < stretched(3)


def test_a_child_that_drips_bytes_meets_the_same_deadline(pair: Pair) -> None:
    stop = threading.Event()

    def drip() -> None:
        for byte in frame({"x": "y" * 1000}):
            if stop.wait(0.01):
                return
            os.write(pair.raw_write, bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        began = time.monotonic()
        assert cause(lambda: pair.here.receive(soon(0.2))) == "timeout"
        assert time.monotonic() - began < stretched(3)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "data",
    [
        LENGTH.pack(0),
        LENGTH.pack(MAX_HEADER_BYTES + 1),
        LENGTH.pack(2**32 - 1),
        LENGTH.pack(4) + b"{no}",
        LENGTH.pack(2) + b"{}",
        LENGTH.pack(2) + b"[]",
        LENGTH.pack(4) + b"null",
        LENGTH.pack(1) + b"3",
        LENGTH.pack(3) + b'"x"',
        LENGTH.pack(4) + b"\xff\xfe\x00\x01",
        LENGTH.pack(60_000) + b"[" * 60_000,
        LENGTH.pack(5000) + b"9" * 5000,
        frame([], ()),
        frame(None, ()),
        frame("x", ()),
        frame({}, {"0": 1}),
        frame({}, "12"),
        frame({}, 5),
        frame({}, None),
        frame({}, (-1,)),
        frame({}, (1.5,)),
        frame({}, ("1",)),
        frame({}, (None,)),
        frame({}, (LIMIT + 1,)),
        frame({}, (LIMIT, 1)),
        frame({}, (10**30,)),
        frame({}, (0,) * (MAX_BLOBS + 1)),
        b"\x7fELF" + b"\0" * 60,
        b"Segmentation fault (core dumped)\n",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_frame_breaks_the_protocol(pair: Pair, data: bytes) -> None:
    pair.write(data)
    assert cause(lambda: pair.here.receive(soon(2))) == "protocol"


def test_a_size_is_no_truth_value(pair: Pair) -> None:
    """JSON's `true` is an integer to Python."""
    pair.write(frame({}, (True,)) + b"x")
    assert cause(lambda: pair.here.receive(soon(2))) == "protocol"


def test_limits_are_exact(pair: Pair) -> None:
    pair.write(frame({}, (0,) * MAX_BLOBS))
    _, blobs = pair.here.receive(soon())
    assert blobs == [bytearray()] * MAX_BLOBS
    assert MAX_BLOB_BYTES == 8 << 30


def test_a_promise_of_much_costs_no_memory_before_it_is_checked(pair: Pair) -> None:
    pair.write(frame({}, (MAX_BLOB_BYTES,)))
    began = time.monotonic()
    assert cause(lambda: pair.here.receive(soon())) == "protocol"
    assert time.monotonic() - began < stretched(1)


def test_nothing_is_run_by_reading(pair: Pair) -> None:
    """A pickle that would run a command is not even looked at."""
    pair.write(frame({"x": "cposix\nsystem\n(S'touch /tmp/owned'\ntR."}, (8,)) + b"\x80\x04cos\n..")
    header, blobs = pair.here.receive(soon())
    assert header["x"].startswith("cposix")
    assert bytes(blobs[0]) == b"\x80\x04cos\n.."


def test_a_frame_after_a_bad_one_is_not_believed(pair: Pair) -> None:
    """The stream is out of step: whoever saw the error must replace the child."""
    pair.write(LENGTH.pack(3) + b"{x}" + frame({"ok": True}))
    assert cause(lambda: pair.here.receive(soon())) == "protocol"


def test_sending_to_the_dead_is_an_exit(pair: Pair) -> None:
    pair.hang_up()
    assert cause(lambda: pair.here.send({"kind": "run"}, [b"x" * 100], soon())) == "exit"


def test_sending_to_one_who_does_not_read_is_a_timeout(pair: Pair) -> None:
    assert cause(lambda: pair.here.send({}, [b"x" * (4 << 20)], soon(0.1))) == "timeout"


def test_a_deadline_in_the_past_is_a_timeout_at_once(pair: Pair) -> None:
    assert cause(lambda: pair.here.receive(time.monotonic() - 10)) == "timeout"


def test_close_closes_both_ends(pair: Pair) -> None:
    read_fd, write_fd = os.pipe()
    channel = Channel(read_fd, write_fd)
    channel.close()
    for fd in (read_fd, write_fd):
        with pytest.raises(OSError):
            os.fstat(fd)


@examples(200)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda b: LENGTH.pack(len(b)) + b)))
def test_any_bytes_are_a_frame_or_a_dead_child(data: bytes) -> None:
    pair = Pair()
    try:
        pair.write(data)
        pair.hang_up()
        with pytest.raises(ChildDied) as caught:
            pair.here.receive(soon())
        assert caught.value.cause in ("exit", "protocol")
    finally:
        pair.close()


def test_no_more_is_received_than_was_asked_for(pair: Pair) -> None:
    there = pair.there()
    there.send({}, [b"x" * 65])
    with pytest.raises(ChildDied, match="limits"):
        pair.here.receive(soon(), most_bytes=64)
    there.close()
