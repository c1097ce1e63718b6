"""Watches the stages of a task: tells where the work stands, and ends it if it stands still.

An attempt whose thread waits for what never comes would keep its lease, and its job, for ever: the lease is
renewed by a thread of its own.
"""

import faulthandler
import logging
import tempfile
import threading
import time
from collections.abc import Callable
from types import TracebackType

from sqlalchemy.exc import SQLAlchemyError

from db.engine import Database
from db.repositories.device_waits import WaitRepository
from warpsmith.processes.stop_children import recall
from warpsmith.system.progress_marker import PROGRESS

LOOK_S = 0.5
TELL_S = 2.0
"""Least seconds between two places in the job's detail."""
LONG_S = 10.0
"""Seconds at one place after which the log names it."""
GRACE_S = 20.0
"""Seconds in which an attempt without children has to end by itself; then its process ends."""

log = logging.getLogger(__name__)


class StageWatch:
    """Context of one attempt, with a thread that watches it.

    Args:
        limit_s: seconds without movement after which the attempt is ended: its children are killed, and who
            waits for them hears that the work was recalled.
        abandon: called with the words of `stalled` if the attempt has not ended `GRACE_S` later. It has to
            store the failure and to end the process.
    """

    def __init__(
        self, database: Database, job_id: str, limit_s: float, abandon: Callable[[str], None]
    ) -> None:
        self.stalled = ""
        """Where it stood still, and for how long; empty if it did not."""
        self._database = database
        self._job_id = job_id
        self._limit_s = limit_s
        self._abandon = abandon
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stage-watch", daemon=True)
        self._told, self._tell_at = "", 0.0
        self._since, self._logged = time.monotonic(), ""

    def __enter__(self) -> "StageWatch":
        PROGRESS.moved()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        words = PROGRESS.words
        while not self._ended.wait(min(LOOK_S, self._limit_s / 2)):
            if PROGRESS.words != words:
                words, self._since = PROGRESS.words, time.monotonic()
            self._tell(words)
            if PROGRESS.still_s() > self._limit_s:
                self._end(words)
                return

    def _tell(self, words: str) -> None:
        now = time.monotonic()
        if words != self._logged and now - self._since >= LONG_S:
            self._logged = words
            log.info("%.0f s so far at: %s", now - self._since, words)
        if words == self._told or now < self._tell_at:
            return
        self._told, self._tell_at = words, now + TELL_S
        try:
            with self._database.write() as session:
                WaitRepository(session).stands(self._job_id, words)
        except SQLAlchemyError as exc:
            self._database.waits("where the work stands", exc)

    def _end(self, words: str) -> None:
        self.stalled = f"nothing moved for {self._limit_s:.3g} s at: {words}"
        log.error("%s; the attempt is ended", self.stalled)
        for line in stacks():
            log.error("%s", line)
        # A child that cannot be ended must not hold this thread, too. But a recall that
        # began after this attempt would forbid the next one its children.
        recalling = threading.Thread(target=recall, name="recall", daemon=True)
        recalling.start()
        recalling.join(GRACE_S)
        if not self._ended.wait(GRACE_S):
            log.error("the attempt has not ended within %g s; its process ends", GRACE_S)
            self._abandon(self.stalled)


def stacks() -> list[str]:
    """The stacks of all threads, as lines."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return [line for line in file.read().decode(errors="replace").splitlines() if line]
