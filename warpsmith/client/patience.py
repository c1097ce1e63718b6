"""How long a client waits for a job."""

import time
from collections.abc import Callable

from warpsmith.errors import TimedOut
from warpsmith.http_models import JobStatus

POLL_S = 0.5


class Patience:
    """One wait for a job: between two statuses, how long to pause.

    Args:
        timeout_s: seconds from now after which it ends; None: it never does.
        on_status: is called with every status.
        every_s: longest pause.
    """

    def __init__(
        self, timeout_s: float | None, on_status: Callable[[JobStatus], None] | None, every_s: float
    ) -> None:
        self._timeout_s = timeout_s
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_status = on_status
        self._every_s = every_s

    def pause_s(self, status: JobStatus) -> float | None:
        """Seconds until the next status; None if the job has ended.

        Raises:
            TimedOut: the time has passed.
        """
        if self._on_status is not None:
            self._on_status(status)
        if status.state.is_terminal:
            return None
        if self._end is None:
            return self._every_s
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            words = f"job {status.id} has not ended in {self._timeout_s:g} s; it goes on"
            raise TimedOut(f"{words} ({status.state.value}): wait for it again, or cancel it")
        return min(self._every_s, left_s)
