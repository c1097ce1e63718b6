"""Computes upcoming references on the host while the device is busy; they stand still during timings."""

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

from warpsmith.domain.jobs.job import NumpyReference, Workload
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.processes.cores import usable_cores
from warpsmith.tuning.checks.extra_cases import certain_cases
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.ports import ReferencePort
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.dtypes import wanted_dtype
from warpsmith.verify.run_report import Array, ReferenceCase

CACHED_BYTES = 2 << 30
"""Limit on the bytes of prefetched outputs that nobody has asked for yet."""
CHECKED_FIRST = 2
"""Number of certain cases that every winner is checked with: its own draw and another one. The others are for
winners that would serve."""
CORES_SHARE = 2
"""Number of cores per prefetching core; the others serve launches, checks and sanitizers."""


class ReferencePrefetch:
    """Implements `ReferencePort` over another one, and prefetches the references needed next.

    The first launch of a graph follows the event that begins a sample after some microseconds of host time,
    which count in all samples of small kernels. Cores that draw inputs and compute would lengthen them. So
    what is being prefetched stands still while something is timed (`paused`), and nothing new begins while a
    caller waits for a reference, whose children then have memory and cores to themselves.

    References may be asked for by several threads: a comparison of one case may run beside the launch of the
    next. While one of them waits, nothing is halted, or it would wait for its own children for ever.
    """

    def __init__(self, inner: ReferencePort) -> None:
        self._inner = inner
        self._at_once = max(1, usable_cores() // CORES_SHARE)
        self._pool = ThreadPoolExecutor(1)
        self._resting = True
        self._quiet = 0
        self._callers = 0
        """Number of threads that wait for references."""
        self._asked = ("", "")
        self._line: deque[ReferenceCase] = deque()
        self._found: dict[WorkloadPlan, Mapping[str, Array]] = {}
        self._wanted: set[WorkloadPlan] = set()
        self._begun: set[WorkloadPlan] = set()
        self._taking = threading.Lock()
        """Held while the line and what was found are touched: the thread may be in the midst of a case."""

    def begin(self, session: DeviceSession, workloads: Iterable[Workload]) -> None:
        """Prefetch what winners of these workloads are checked with, what all are first, if it may be."""
        if may_overlap(session):
            with suppress(ExpressionError):  # it is said in its turn
                cases = [certain_cases(session, w) for w in workloads]
                first, more = [c[:CHECKED_FIRST] for c in cases], [c[CHECKED_FIRST:] for c in cases]
                self.start(session, itertools.chain.from_iterable((*first, *more)))

    def start(self, session: DeviceSession, cases: Iterable[Case]) -> None:
        """Compute `cases` in order whenever nothing is timed; earlier requests for others are dropped.

        Raises:
            ExpressionError: a shape of a case cannot be evaluated.
        """
        reference = session.job.reference
        assert isinstance(reference, NumpyReference)
        ahead = [c for c in cases if not session.expected.on_device(c)]
        wanted = [(session.inputs.plan(c), c.workload.dimensions) for c in ahead]
        with self._taking:
            self._asked = (reference.source, reference.function)
            self._wanted = {plan for plan, _ in wanted}
            self._found = {plan: found for plan, found in self._found.items() if plan in self._wanted}
            known = self._found.keys() | self._begun
            self._line = deque(c for c in wanted if c[0] not in known)
        self._resume()

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`. Prefetched results are returned and removed from the store."""
        asked = {plan for plan, _ in cases}
        known: dict[WorkloadPlan, Mapping[str, Array] | InvalidInput] = {}
        with self._taking:
            self._line = deque(c for c in self._line if c[0] not in asked)
            self._take(asked, known)
            self._callers += 1
        try:
            if len(known) < len(asked):
                self._rest()
                with self._taking:
                    self._take(asked, known)
            missing = [c for c in cases if c[0] not in known]
            if missing:
                found = self._inner.numpy_many(source, function, missing)
                known |= {plan: outputs for (plan, _), outputs in zip(missing, found, strict=True)}
        finally:
            with self._taking:
                self._callers -= 1
            self._resume()
        return [known[plan] for plan, _ in cases]

    def _take(
        self, asked: set[WorkloadPlan], known: dict[WorkloadPlan, Mapping[str, Array] | InvalidInput]
    ) -> None:
        """Move what was found of the plans asked for from the store to `known`."""
        known |= {plan: self._found.pop(plan) for plan in asked & self._found.keys()}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context in which nothing is computed but what is asked for; what has begun stands still."""
        with self._taking:
            self._quiet += 1
        self._resume()
        try:
            yield
        finally:
            with self._taking:
                self._quiet -= 1
            self._resume()

    def halt(self) -> None:
        """See `ReferencePort.halt`."""
        self._inner.halt()

    def go_on(self) -> None:
        """See `ReferencePort.go_on`."""
        self._inner.go_on()

    def close(self) -> None:
        """Drop everything. No thread and no child is left when it returns."""
        with self._taking:
            self._line.clear()
        self._rest()
        self._found.clear()
        self._pool.shutdown()

    def _rest(self) -> None:
        """Wait for what has begun, halted or not; nothing new begins until `_resume`."""
        with self._taking:
            self._resting = True
        self._inner.go_on()
        # There is one thread, which takes calls in order: this one comes after all that have begun.
        wait([self._pool.submit(_nothing)])

    def _resume(self) -> None:
        """Go on, or halt, as the pauses say; nothing new begins while a caller waits."""
        with self._taking:
            if self._quiet:
                self._resting = True
                if not self._callers:
                    self._inner.halt()
                return
            self._inner.go_on()
            begins = bool(self._line) and not self._callers
            if begins:
                self._resting = False
        if begins:
            self._pool.submit(self._work_off)

    def _work_off(self) -> None:
        while cases := self._next():
            found: Sequence[Mapping[str, Array] | InvalidInput] = ()
            try:
                found = self._inner.numpy_many(*self._asked, cases)
            finally:
                with self._taking:
                    self._begun.clear()
                    # A failed case is computed again on request, and its error is reported then.
                    for (plan, _), outputs in zip(cases, found, strict=False):
                        if plan in self._wanted and not isinstance(outputs, InvalidInput):
                            self._found[plan] = outputs

    def _next(self) -> list[ReferenceCase]:
        """The cases that are computed next, which leave the line; none while it rests."""
        with self._taking:
            room = CACHED_BYTES - sum(map(cached_bytes, self._found))
            cases: list[ReferenceCase] = []
            while self._line and not self._resting and len(cases) < self._at_once:
                plan, _ = self._line[0]
                room -= cached_bytes(plan)
                # A caller waits for whole batches, and wants one workload at a time.
                if room < 0 or (cases and plan.workload != cases[0][0].workload):
                    break
                cases.append(self._line.popleft())
            self._begun = {plan for plan, _ in cases}
            return cases


def may_overlap(session: DeviceSession) -> bool:
    """True if the host may compute references while the device works.

    False if kernels run on the host's own cores, or if the user's kernel is the reference.
    """
    return isinstance(session.job.reference, NumpyReference) and not session.info.shares_host


@contextmanager
def prefetch_references(session: DeviceSession) -> Iterator[ReferencePrefetch]:
    """Context in which the session takes its references from a prefetcher."""
    made = ReferencePrefetch(session.expected.reference)
    try:
        with session.expected.computed_by(made):
            yield made
    finally:
        made.close()


def _nothing() -> None:
    """A call that comes in its turn."""


def cached_bytes(plan: WorkloadPlan) -> int:
    """Bytes of the expected outputs of a case."""
    return sum(b.elements * wanted_dtype(b.dtype).itemsize for b in plan.mutated)
