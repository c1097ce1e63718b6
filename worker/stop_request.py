"""Remembers that a signal asked this process to stop, and wakes whoever waits for that."""

import os
import select
import signal
from types import FrameType


class StopRequest:
    """Set by a signal handler, waited for by the same thread.

    A handler runs between any two steps of the main thread. It takes no lock: `threading.Event` has one, and
    `set` waits for ever if the main thread holds it inside `wait`.
    """

    def __init__(self) -> None:
        self._signum: signal.Signals | None = None
        self._woken, self._wake = os.pipe()

    @property
    def signum(self) -> signal.Signals | None:
        """The last signal that asked; None: none did."""
        return self._signum

    def stop_on_signals(self) -> None:
        """Have SIGTERM and SIGINT set this request. Only the main thread may call it."""
        signal.signal(signal.SIGTERM, self.handle)
        signal.signal(signal.SIGINT, self.handle)

    def handle(self, signum: int, _frame: FrameType | None = None) -> None:
        """The handler of both signals."""
        first, self._signum = self._signum is None, signal.Signals(signum)
        # Once: a full pipe would hold the handler up.
        if first:
            os.write(self._wake, b"\0")

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most `seconds`; True if it was made."""
        # The byte stays in the pipe, so that every later wait ends at once.
        return bool(select.select([self._woken], [], [], seconds)[0])

    def close(self) -> None:
        """Release the pipe. No signal may set this request any more."""
        os.close(self._woken)
        os.close(self._wake)
