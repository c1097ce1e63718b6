"""References asked for, prefetched, halted and timed by several threads at once: nobody waits for ever."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from testbed.deadlines import HANGS_S
from testbed.fakes import FakeReference, fake_ports
from tests.unit.tuning.observed_references import Outcomes
from warpsmith.domain.jobs.job import Workload
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.run_report import ReferenceCase

JOB = scale_job()
ROUNDS = 150
CALLS = 6
"""Calls of each thread in a round."""
STUCK_S = 20.0
"""Seconds after which a round of some milliseconds is stuck."""


@dataclass
class Halting(FakeReference):
    """Stands still while it is halted, as real children do; fails now and then."""

    lots: random.Random
    going: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    """The test is over: what still waits ends."""

    def __post_init__(self) -> None:
        self.going.set()

    def halt(self) -> None:
        self.going.clear()

    def go_on(self) -> None:
        self.going.set()

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        for _ in cases:
            time.sleep(self.lots.random() * 4e-4)
            while not self.going.wait(0.05):
                if self.over.is_set():
                    break
        if self.lots.random() < 0.1:
            raise OSError("no process can be started")
        return [InvalidInput("reference", "none") for _ in cases]


@pytest.mark.parametrize("seed", range(3))
def test_whoever_waits_for_a_reference_gets_one_whatever_others_do(seed: int) -> None:
    lots = random.Random(seed)
    ports = fake_ports(lambda *_: 1.0)[0]
    session = DeviceSession(JOB, ports)
    cases = [Case(Workload(dimensions={"n": n})) for n in range(10, 40)]
    wanted = [(session.inputs.plan(c), c.workload.dimensions) for c in cases]

    for turn in range(ROUNDS):
        inner = Halting(random.Random(lots.random()))
        prefetch = ReferencePrefetch(inner)

        def asks(own: random.Random, prefetch: ReferencePrefetch = prefetch) -> None:
            for _ in range(CALLS):
                with _failing():
                    prefetch.numpy_many("", "", own.sample(wanted, own.randint(1, 3)))
                time.sleep(own.random() * 3e-4)

        def times(own: random.Random, prefetch: ReferencePrefetch = prefetch) -> None:
            for _ in range(CALLS):
                prefetch.start(session, own.sample(cases, 5))
                with prefetch.paused():
                    time.sleep(own.random() * 3e-4)
                    if own.random() < 0.3:
                        with _failing():
                            prefetch.numpy_many("", "", own.sample(wanted, 1))

        assert _end([asks, asks, times, times], lots), f"round {turn} is stuck"
        inner.over.set()

        def ends(_: random.Random, prefetch: ReferencePrefetch = prefetch) -> None:
            prefetch.close()

        assert _end([ends], lots), f"the end of round {turn} is stuck"


def _end(works: Sequence[Callable[[random.Random], None]], lots: random.Random) -> bool:
    """True if all works end in time, each in a thread of its own."""
    threads = [
        threading.Thread(target=work, args=(random.Random(lots.random()),), daemon=True) for work in works
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + STUCK_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        assert "no process" in str(exc)


class Slow(FakeReference):
    """Each computation waits until it is let; remembers what has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = {f"n={n}": threading.Event() for n in range(10, 20)}
        self.beginning = threading.Condition()

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        for plan, _ in cases:
            with self.beginning:
                self.begun.append(plan.workload)
                self.beginning.notify_all()
            assert self.may_end[plan.workload].wait(HANGS_S)
        return [InvalidInput("reference", "none") for _ in cases]

    def has_begun(self, *keys: str) -> bool:
        with self.beginning:
            return self.beginning.wait_for(lambda: {*keys} <= {*self.begun}, STUCK_S)


def test_nothing_is_prefetched_while_another_thread_still_waits_for_a_reference() -> None:
    inner = Slow()
    prefetch = ReferencePrefetch(inner)
    session = DeviceSession(JOB, fake_ports(lambda *_: 1.0)[0])
    one, two, *rest = [Case(Workload(dimensions={"n": n})) for n in range(10, 20)]

    def ask(case: Case) -> None:
        prefetch.numpy_many("", "", [(session.inputs.plan(case), case.workload.dimensions)])

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ask, one), pool.submit(ask, two)
        try:
            assert inner.has_begun("n=10", "n=11")
            prefetch.start(session, rest)
            inner.may_end["n=10"].set()
            first.result(STUCK_S)
            time.sleep(0.1)
            assert sorted(inner.begun) == ["n=10", "n=11"]
            inner.may_end["n=11"].set()
            second.result(STUCK_S)
            assert inner.has_begun("n=12"), "nobody waits any longer"
        finally:
            for event in inner.may_end.values():
                event.set()
    prefetch.close()


def test_what_failed_beforehand_is_prefetched_again() -> None:
    """An error of ours leaves no case behind that counts as begun for ever."""
    tries: list[int] = []
    again = threading.Event()

    class Failing(FakeReference):
        def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
            tries.append(len(cases))
            if len(tries) == 1:
                raise OSError("no process can be started")
            again.set()
            return super().numpy_many(source, function, cases)

    prefetch = ReferencePrefetch(Failing())
    session = DeviceSession(JOB, fake_ports(lambda *_: 1.0)[0])
    cases = [Case(w) for w in JOB.workloads[:1]]
    try:
        prefetch.start(session, cases)
        deadline = time.monotonic() + STUCK_S
        while not tries and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        prefetch.start(session, cases)
        assert again.wait(5)
    finally:
        prefetch.close()
