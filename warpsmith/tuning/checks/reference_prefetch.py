"""References of what comes next, computed by the host while the device is busy with what is not timed."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace

from warpsmith.domain.job import NumpyReference, Workload
from warpsmith.domain.plan import WorkloadPlan
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.tuning.checks.extra_cases import certain_cases
from warpsmith.tuning.ports import ReferencePort
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.session.session_ports import Case
from warpsmith.verify.run_report import Array, ReferenceCase

KEPT_BYTES = 2 << 30
"""Outputs that are computed beforehand, at most; what they leave out is computed in its turn."""
WIDE_BYTES = 8
CORES_SHARE = 2
"""One core in so many computes beforehand: the others are for what launches, checks and inspects."""


class ReferencePrefetch:
    """Implements `ReferencePort` over another one, which it also asks for what is wanted next.

    A graph's first launch follows the event that begins a sample after some microseconds of the host, which
    all samples of small kernels hold a share of: cores that draw inputs and compute would be seen in them.
    So nothing is computed beforehand while something is timed (`paused`), nor beside what somebody waits
    for, whose children then have the memory and the cores to themselves.

    Belongs to one thread. What it shares with the thread that computes it touches only while that rests.
    """

    def __init__(self, inner: ReferencePort) -> None:
        self._inner = inner
        self._at_once = max(1, len(os.sched_getaffinity(0)) // CORES_SHARE)
        self._pool = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None
        self._resting = True
        self._quiet = 0
        self._asked = ("", "")
        self._line: deque[ReferenceCase] = deque()
        self._found: dict[WorkloadPlan, Mapping[str, Array]] = {}

    def prefetch_next(
        self, session: DeviceSession, workload: Workload, following: Sequence[Workload]
    ) -> None:
        """Begin what winners of the next workload are checked with, where there is one and it is possible.

        Args:
            workload: that winners are checked on now.
        """
        if not following or not may_overlap(session):
            return
        with suppress(ExpressionError):  # it is said in its turn
            # First all that is certain of this one, or it would wait for the other's.
            session.expect(certain_cases(session, workload))
            self.start(session, certain_cases(session, following[0]))

    def start(self, session: DeviceSession, cases: Iterable[Case]) -> None:
        """Have `cases` computed, in their order, when nothing is timed; forgets what was left of others.

        Raises:
            ExpressionError: a shape of theirs cannot be evaluated.
        """
        reference = session.job.reference
        assert isinstance(reference, NumpyReference)
        wanted = [(session.plan(c), c.workload.dimensions) for c in cases]
        with self.paused():
            self._asked = (reference.source, reference.function)
            self._line, self._found = deque(_kept(wanted)), {}

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`. What is known beforehand is handed over, and forgotten here."""
        with self.paused():
            asked = {plan for plan, _ in cases}
            self._line = deque(c for c in self._line if c[0] not in asked)
            known = [self._found.pop(plan, None) for plan, _ in cases]
            missing = [c for c, outputs in zip(cases, known, strict=True) if outputs is None]
            rest = iter(self._inner.numpy_many(source, function, missing) if missing else ())
            return [next(rest) if outputs is None else outputs for outputs in known]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within it nothing is computed beforehand. To enter it takes as long as what has been begun."""
        self._rest()
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1
            self._resume()

    def close(self) -> None:
        """Forget everything. No thread and no child is left when it returns."""
        self._rest()
        self._line.clear()
        self._found.clear()
        self._pool.shutdown()

    def _rest(self) -> None:
        self._resting = True
        if self._running is not None:
            wait([self._running])

    def _resume(self) -> None:
        if self._line and not self._quiet:
            self._resting = False
            self._running = self._pool.submit(self._work_off)

    def _work_off(self) -> None:
        while self._line and not self._resting:
            cases = [self._line.popleft() for _ in range(min(self._at_once, len(self._line)))]
            found = self._inner.numpy_many(*self._asked, cases)
            for (plan, _), outputs in zip(cases, found, strict=True):
                # What fails here is computed again when somebody asks, and the words are said then.
                if not isinstance(outputs, InvalidInput):
                    self._found[plan] = outputs


def may_overlap(session: DeviceSession) -> bool:
    """Whether the host may compute references while the device works.

    Not where kernels run on the host's own cores, and not where the user's kernel is the reference.
    """
    return isinstance(session.job.reference, NumpyReference) and not session.ports.opener.info.shares_host


@contextmanager
def prefetch_references(session: DeviceSession) -> Iterator[ReferencePrefetch]:
    """While it is open, the session has its references from there."""
    own = session.ports
    made = ReferencePrefetch(own.reference)
    session.ports = replace(own, reference=made)
    try:
        yield made
    finally:
        session.ports = own
        made.close()


def _kept(cases: Iterable[ReferenceCase]) -> Iterator[ReferenceCase]:
    """The first of them, as many as there is memory for."""
    left = KEPT_BYTES
    for plan, dims in cases:
        left -= WIDE_BYTES * sum(b.elements for b in plan.mutated)
        if left < 0:
            return
        yield plan, dims
