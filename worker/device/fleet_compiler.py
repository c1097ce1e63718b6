"""Compiling with the fleet's help: compile nodes take kernels that this machine's compilers cannot start at
once.

A request is a row in the database; a node takes it, and the binary comes back the same way. Nothing depends
on the nodes: requests that none has begun are taken back as soon as a compiler is free here, and binaries
that a node does not deliver are compiled here.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError

from db.engine import Database
from db.message_names import COMPILE, compile_queue
from db.repositories.remote_compilations import CompilationRepository, CompilationRequest
from db.repositories.workers import WorkerRepository
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.state import CompilationState
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.system.storage_errors import cause_of
from warpsmith.tuning.ports import CompilerPort
from worker.device.compile_cache import artifact_key, unpack

POLL_S = 0.02
LOOK_S = 5.0
"""Seconds between queries for compile nodes."""
LATE_S = 10.0
"""Seconds after which a node's binary is no longer waited for."""
LATE_RATIO, SOON_S = 5.0, 1.0
"""After the first deliveries: limit as a multiple of the longest one, but at least these seconds."""

Notify = Callable[[str, str, str], object]

log = logging.getLogger(__name__)


@dataclass
class _Order:
    """A kernel that a caller waits for."""

    wanted: CompilationRequest
    result: "Future[Compiled | Rejected]" = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)
    announced: bool = False
    """True if the fleet was asked for it."""
    here: bool = False
    """True if this machine compiles it."""
    waits: bool = False
    """True if no node had begun it at the last check."""

    @property
    def key(self) -> str:
        return self.wanted.key


class FleetCompiler:
    """Implements `tuning.ports.CompilerPort` over this machine's compilers and those of the fleet.

    Args:
        here: compiler of this machine.
        width: number of kernels that `here` compiles concurrently.
        device: device for which these kernels are compiled.
        notify: sends a message (name, queue, subject), which may be lost.
    """

    def __init__(
        self, here: CompilerPort, width: int, device: DeviceInfo, database: Database, notify: Notify
    ) -> None:
        self.helped = 0
        """Number of kernels that compile nodes have compiled."""
        self._here = here
        self._width = width
        self._queue = compile_queue(device)
        self._database = database
        self._notify = notify
        self._orders: dict[str, _Order] = {}
        self._busy = 0
        self._longest_s: float | None = None
        """Longest delivery time of a node's binary, seconds."""
        self._slots, self._look_at = 0, 0.0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    def slots(self) -> int:
        """Number of kernels that the fleet's compile nodes compile concurrently for this device."""
        if time.monotonic() >= self._look_at:
            try:
                with self._database.read() as session:
                    self._slots = WorkerRepository(session).compile_slots(self._queue)
            except DBAPIError:
                self._slots = 0
            self._look_at = time.monotonic() + LOOK_S
        return self._slots

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """See `CompilerPort.submit`."""
        key = artifact_key(kernel, device) if not self._closed and self.slots() else None
        if key is None:
            return self._here.submit(kernel, device)
        with self._lock:
            known = self._orders.get(key)
            if known is not None:
                return known.result
            order = self._orders[key] = _Order(CompilationRequest(key, self._queue, kernel, device))
            order.here = self._busy < self._width
            self._busy += order.here
        if order.here:
            self._compile(order)
        else:
            self._begin()
            self._wake.set()
        return order.result

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._attend, name="fleet-compiler", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop using the database; pending requests are compiled here."""
        with self._lock:
            self._closed, thread = True, self._thread
        self._wake.set()
        if thread is not None:
            thread.join()
        self._all_here()

    def _attend(self) -> None:
        while not self._closed:
            self._wake.wait(POLL_S if self._away() else None)
            self._wake.clear()
            try:
                self._announce()
                self._collect()
                self._take_back()
            except DBAPIError as exc:
                log.warning("compiling without the fleet: %s", cause_of(exc))
                self._all_here()
            except Exception:
                # Any error: callers wait for these kernels.
                log.exception("compiling without the fleet")
                self._all_here()

    def _away(self) -> list[_Order]:
        """Kernels that this machine does not compile, oldest first."""
        with self._lock:
            return [o for o in self._orders.values() if not o.here]

    def _announce(self) -> None:
        fresh = [o for o in self._away() if not o.announced]
        if not fresh:
            return
        with self._database.write() as session:
            asked = CompilationRepository(session).want([o.wanted for o in fresh])
        for order in fresh:
            order.announced = True
        for key in asked:
            self._notify(COMPILE, self._queue, key)

    def _collect(self) -> None:
        # Kernels submitted since then are not in the database yet and are not lost.
        away = {o.key: o for o in self._away() if o.announced}
        if not away:
            return
        with self._database.read() as session:
            compilations = CompilationRepository(session)
            states = compilations.states(list(away))
            done = [key for key, state in states.items() if state is CompilationState.DONE]
            artifacts = compilations.artifacts(done) if done else {}
        for key, order in away.items():
            state = states.get(key)
            order.waits = state is CompilationState.WANTED
            compiled = unpack(artifacts[key]) if key in artifacts else None
            if compiled is not None:
                self.helped += 1
                self._longest_s = max(self._longest_s or 0.0, time.monotonic() - order.since)
                self._settle(order, compiled)
            elif self._is_lost(order, state):
                self._compile_after_all(order)

    def _is_lost(self, order: _Order, state: CompilationState | None) -> bool:
        """True if no result will come: the row is gone, damaged or failed, or its node has died."""
        if state is CompilationState.TAKEN:
            usual = math.inf if self._longest_s is None else max(SOON_S, LATE_RATIO * self._longest_s)
            return time.monotonic() - order.since > min(usual, LATE_S)
        return state is not CompilationState.WANTED

    def _take_back(self) -> None:
        """Take back requests that no node has begun, while compilers are free here."""
        waiting = {o.key: o for o in self._away() if o.waits}
        some = list(waiting)[: max(0, self._width - self._busy)]
        if not some:
            return
        with self._database.write() as session:
            taken = CompilationRepository(session).withdraw(some)
        for key in taken:
            self._compile_after_all(waiting[key])

    def _all_here(self) -> None:
        self._look_at = time.monotonic() + LOOK_S
        self._slots = 0
        for order in self._away():
            self._compile_after_all(order)

    def _compile_after_all(self, order: _Order) -> None:
        with self._lock:
            order.here = True
            self._busy += 1
        self._compile(order)

    def _compile(self, order: _Order) -> None:
        def ended(done: "Future[Compiled | Rejected]") -> None:
            with self._lock:
                self._busy -= 1
            self._wake.set()
            failed = done.exception()
            if failed is None:
                self._settle(order, done.result())
            else:
                self._forget(order)
                order.result.set_exception(failed)

        self._here.submit(order.wanted.kernel, order.wanted.device).add_done_callback(ended)

    def _settle(self, order: _Order, outcome: Compiled | Rejected) -> None:
        self._forget(order)
        order.result.set_result(outcome)

    def _forget(self, order: _Order) -> None:
        with self._lock:
            del self._orders[order.key]
