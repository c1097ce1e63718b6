"""Frames between a parent and its child: a JSON header and raw blobs, both limited in size.

Nothing is ever unpickled: a child may have been taken over by what it runs.
"""

import json
import math
import os
import select
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpsmith.errors import ChildDied
from warpsmith.system.progress_marker import PROGRESS

MAX_HEADER_BYTES = 1 << 20
MAX_BLOB_BYTES = 1 << 33
MAX_BLOBS = 4096
_LENGTH = struct.Struct(">I")
_PIECE_BYTES = 1 << 20

LARGE_BYTES = 4 << 20

Blob = bytes | memoryview
Received = bytearray | memoryview


class Channel:
    """Both directions of a pipe pair.

    Args:
        read_fd, write_fd: file descriptors; closed by `close`.
        max_reply_bytes: limit on the total size of the blobs of one received frame.
    """

    def __init__(self, read_fd: int, write_fd: int, max_reply_bytes: int = MAX_BLOB_BYTES) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._max_reply_bytes = max_reply_bytes
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)

    def send(
        self, header: Mapping[str, Any], blobs: Sequence[Blob] = (), deadline: float | None = None
    ) -> None:
        """Write one frame.

        Args:
            deadline: on the monotonic clock; None waits for ever.

        Raises:
            ChildDied: the other end is gone (`exit`) or does not read (`timeout`).
        """
        text = json.dumps({"header": dict(header), "blobs": [len(b) for b in blobs]}).encode()
        self._write(_LENGTH.pack(len(text)) + text, deadline)
        for blob in blobs:
            self._write(blob, deadline)

    def receive(
        self, deadline: float | None = None, most_bytes: int | None = None
    ) -> tuple[dict[str, Any], list[Received]]:
        """Read one frame.

        Args:
            most_bytes: limit on the total size of its blobs, where it is known; at most that of the channel.

        Raises:
            ChildDied: the other end is gone (`exit`), silent past the deadline (`timeout`), or it sent
                something that is not a frame (`protocol`).
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if not 0 < length <= MAX_HEADER_BYTES:
            raise ChildDied("protocol", f"a header of {length} bytes")
        try:
            frame = json.loads(bytes(self._read(length, deadline)))
            header, sizes = frame["header"], frame["blobs"]
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise ChildDied("protocol", "a header that is not JSON") from exc
        if (
            not isinstance(header, dict)
            or not isinstance(sizes, list)
            or len(sizes) > MAX_BLOBS
            or not all(type(s) is int and s >= 0 for s in sizes)
            or sum(sizes) > min(self._max_reply_bytes, math.inf if most_bytes is None else most_bytes)
        ):
            raise ChildDied("protocol", "a header that breaks the limits")
        blobs = [self._read(size, deadline) for size in sizes]
        PROGRESS.moved()
        return header, blobs

    def close(self) -> None:
        """Close both ends held by this process."""
        for fd in {self._read_fd, self._write_fd}:
            os.close(fd)

    def _write(self, data: Blob, deadline: float | None) -> None:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        while view:
            _wait(self._write_fd, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._write_fd, view[:_PIECE_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as exc:
                raise ChildDied("exit", "closed its pipe") from exc

    def _read(self, count: int, deadline: float | None) -> Received:
        # NumPy asks for huge pages, which spares the zeroing of small ones: a third of the time of a read.
        data = bytearray(count) if count < LARGE_BYTES else np.empty(count, np.uint8).data
        view = memoryview(data)
        while view:
            _wait(self._read_fd, select.POLLIN, deadline)
            try:
                got = os.readv(self._read_fd, [view[:_PIECE_BYTES]])
            except BlockingIOError:
                continue
            if got == 0:
                raise ChildDied("exit", "ended without a reply")
            view = view[got:]
        return data


def _wait(fd: int, event: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(fd, event)
    timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(timeout):
        raise ChildDied("timeout", "no answer before the deadline")
