"""Waiting for the end of a job: polls of its status, their pauses and the time limit."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from warpsmith.errors import TimedOut
from warpsmith.extensions.clients.client.request import Reply, Request
from warpsmith.http_models import JobStatus

POLL_S = 0.5
LONG_POLL_S = 20.0
"""Longest time for which the service is asked to wait for a change, below the patience for a reply."""


@dataclass(frozen=True)
class Seen:
    """A status that a client has."""

    status: JobStatus | None
    """Changed status; None if the service answered that it is still the same (304)."""
    etag: str = ""


@dataclass(frozen=True)
class StatusPoll(Request[Seen]):
    """A poll of a status that a client may have already."""

    def answer(self, reply: Reply, url: str) -> Seen:
        """The status in a reply; see `Request.answer`."""
        if reply.status == 304:
            return Seen(None, reply.etag)
        return replace(super().answer(reply, url), etag=reply.etag)


class StatusWait:
    """Wait for the end of one job: makes the next poll and the pause before it.

    Args:
        path: of the status.
        timeout_s: seconds from now after which it ends; None: it never does.
        on_status: is called with every status.
        every_s: shortest time between two statuses.
    """

    def __init__(
        self,
        path: str,
        timeout_s: float | None,
        on_status: Callable[[JobStatus], None] | None,
        every_s: float,
    ) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._end = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_status = on_status
        self._every_s = every_s
        self._asked_s = 0.0
        self._last = Seen(None)

    def poll(self, longest_s: float = LONG_POLL_S) -> StatusPoll:
        """The next poll.

        Args:
            longest_s: longest time for which the service may wait for a change; 0: it answers at once.
        """
        self._asked_s = time.monotonic()
        wait_s = longest_s if self._end is None else min(longest_s, max(0.0, self._end - self._asked_s))
        known = self._last.etag
        return StatusPoll(
            lambda body: Seen(JobStatus.model_validate_json(body)),
            "GET",
            self._path,
            headers={"If-None-Match": known} if known else {},
            params=[("wait", f"{wait_s:.3f}")] if known and wait_s > 0 else [],
        )

    def ended(self, seen: Seen) -> JobStatus | None:
        """The status of a job that has ended; None if it goes on.

        Raises:
            TimedOut: the time has passed.
        """
        if seen.status is not None:
            self._last = seen
            if self._on_status is not None:
                self._on_status(seen.status)
        status = self._last.status
        assert status is not None
        if status.state.is_terminal:
            return status
        if self._end is not None and time.monotonic() >= self._end:
            words = f"job {status.id} has not ended in {self._timeout_s:g} s; it goes on"
            raise TimedOut(f"{words} ({status.state.value}): wait for it again, or cancel it")
        return None

    @property
    def pause_s(self) -> float:
        """Seconds until the next poll."""
        now_s = time.monotonic()
        pause_s = max(0.0, self._asked_s + self._every_s - now_s)
        return pause_s if self._end is None else min(pause_s, max(0.0, self._end - now_s))


class LongPolls:
    """Turns to wait at the service: each holds a connection for its whole time.

    Args:
        most: turns at a time.
    """

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)

    def longest_s(self) -> float:
        """Take a turn for a long poll: its longest wait at the service in seconds, `LONG_POLL_S`, until
        `give_back`; 0 if all turns are taken."""
        return LONG_POLL_S if self._free.acquire(blocking=False) else 0.0

    def give_back(self, longest_s: float) -> None:
        """Free the turn that `longest_s` gave, if it gave one."""
        if longest_s > 0:
            self._free.release()
