"""Signals that ask a command to end: it ends what it started, and says how to go on."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked this process to end. No `except Exception` takes it for an error.

    Args:
        signum: the signal that asked.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """As shells have it."""
        return 128 + self.signum


class Interrupts:
    """What a signal does. The first is raised as `Interrupted`; none disturbs what ends after it."""

    def __init__(self) -> None:
        self._raised = False
        self._again: Callable[[], None] | None = None

    def hurry_with(self, action: Callable[[], None]) -> None:
        """Have another Ctrl-C, while things end, do this."""
        self._again = action

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """The handler of every signal of `SIGNALS`."""
        if not self._raised:
            self._raised = True
            raise Interrupted(signum)
        # `timeout` sends its signal twice; only somebody at a terminal asks again.
        if signum == signal.SIGINT and self._again is not None:
            self._again()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Within it SIGINT, SIGTERM and SIGHUP raise `Interrupted`; what is ignored (nohup) stays so.

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
