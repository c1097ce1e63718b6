"""Messages in files for an embedded service: kombu's file-system transport, with messages that appear whole.

kombu 5.7 (`kombu/transport/filesystem.py`) creates a message under its last name and writes it afterwards.
Its lock does not stop a reader, which renames the file before it opens it. So a reader can find half a
message, and its worker ends ("Unrecoverable error: JSONDecodeError"). The table of an exchange is written
in the same way. Names begin with milliseconds of varying length, so messages of one millisecond, and of ten
seconds and nine, change places.
"""

import fcntl
import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem

SCHEME = "warpsmith-files"
"""Scheme of the broker's URL."""
TAKEN = "taken"
MAX_CHARACTERS = 64 * 1024
"""Limit on a message; ours have a few hundred characters."""

log = logging.getLogger(__name__)


class FileChannel(filesystem.Channel):
    """A channel whose files are renamed into place, within one folder, after they are written."""

    _last_ns = 0

    # kombu's base classes disagree on the second name.
    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        FileChannel._last_ns = max(time.time_ns(), FileChannel._last_ns + 1)
        name = f"{FileChannel._last_ns:020d}_{uuid.uuid4()}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, json.dumps(payload))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = Path(self.data_folder_in)
        for name in sorted(path.name for path in folder.iterdir()):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = folder / f"{TAKEN}.{name}"
            try:
                # One of several readers succeeds; to the others the message is gone.
                (folder / name).rename(taken)
            except FileNotFoundError:
                continue
            with taken.open() as file:
                text = file.read(MAX_CHARACTERS + 1)
            taken.unlink()
            if len(text) > MAX_CHARACTERS:
                log.warning("a message of more than %d characters was dropped", MAX_CHARACTERS)
                continue
            return json.loads(text)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        bound = [routing_key or "", pattern or "", queue or ""]
        with self._tables():
            kombus: Any = self  # its methods have no types
            table = [list(each) for each in kombus.get_table(exchange)]
            if bound not in table:
                _write_whole(kombus._exchange_file(exchange), json.dumps([bound, *table]))

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any) -> None:
        kombus: Any = self  # its methods have no types
        kombus._purge(queue)
        gone = [routing_key or "", pattern or "", queue or ""]
        with self._tables():
            table = [list(each) for each in kombus.get_table(exchange)]
            if gone in table:
                table.remove(gone)
                _write_whole(kombus._exchange_file(exchange), json.dumps(table))

    @contextmanager
    def _tables(self) -> Iterator[None]:
        """Hold the lock of those who change tables; readers need none."""
        self.control_folder.mkdir(exist_ok=True)
        with (self.control_folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class FileTransport(filesystem.Transport):
    """kombu's transport with this channel."""

    Channel = FileChannel


def register() -> None:
    """Make the scheme known to kombu."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:FileTransport"


def _write_whole(path: Path, text: str) -> None:
    part = path.with_name(f".{uuid.uuid4()}.part")
    try:
        part.write_text(text)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
