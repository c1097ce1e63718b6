"""Signals that ask a command to end: it ends the processes it started and says how to continue."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked this process to end. No `except Exception` catches it.

    Args:
        signum: the signal that asked.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """The exit code by the convention of shells."""
        return 128 + self.signum


class Interrupts:
    """Signal handling. The first signal is raised as `Interrupted`; later ones do not disturb the
    clean-up."""

    def __init__(self) -> None:
        self._raised = False
        self._again: Callable[[], None] | None = None

    def hurry_with(self, action: Callable[[], None]) -> None:
        """Set the action of a further Ctrl-C during the clean-up."""
        self._again = action

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """The handler of every signal of `SIGNALS`."""
        if not self._raised:
            self._raised = True
            raise Interrupted(signum)
        # `timeout` sends its signal twice; only a user at a terminal asks again.
        if signum == signal.SIGINT and self._again is not None:
            self._again()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Context in which SIGINT, SIGTERM and SIGHUP raise `Interrupted`; ignored signals (nohup) stay ignored.

    Only the main thread may enter it.
    """
    made = Interrupts()
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    taken = [signum for signum in SIGNALS if before[signum] is not signal.SIG_IGN]
    for signum in taken:
        signal.signal(signum, made.handle)
    try:
        yield made
    finally:
        for signum in taken:
            signal.signal(signum, before[signum])
