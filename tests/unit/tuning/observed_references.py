"""References that tell what is computed when, and devices that tell of each launch."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from testbed.deadlines import HANGS_S
from testbed.fakes import FakeDevice, FakeOpener, FakeReference, Fault, TimeModel, fake_ports
from tests.unit.tuning.test_tuning_loops import times
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.verify.run_report import Array, ReferenceCase, RunReport

Outcomes = Sequence[Mapping[str, Array] | InvalidInput]


@dataclass
class Reference(FakeReference):
    """Right for `scale_job`; remembers what it computed, and in which thread."""

    during: Callable[[Sequence[ReferenceCase]], None] = lambda cases: None
    """Called in the midst of a computation beforehand."""
    fails: Callable[[str, bool], bool] = lambda key, early: False
    """Whether a case fails, by its key and by whether it is computed beforehand."""
    early: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    busy: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    """Something is computed beforehand, or was."""
    caller: threading.Thread = field(default_factory=threading.current_thread)

    going: threading.Event = field(default_factory=threading.Event)
    """Not set while it is halted."""
    halts: int = 0

    def __post_init__(self) -> None:
        self.going.set()

    def halt(self) -> None:
        self.halts += self.going.is_set()
        self.going.clear()

    def go_on(self) -> None:
        self.going.set()

    def waited_for(self) -> None:
        assert self.begun.wait(HANGS_S)

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        assert self.busy == 0, "two calls at once"
        thread = threading.current_thread()
        # Winners are checked beside each other, in threads that wait for what they ask.
        early = thread is not self.caller and not thread.name.startswith("beside")
        self.busy += 1
        try:
            (self.early if early else self.asked).extend(str(plan.key) for plan, _ in cases)
            if early:
                self.begun.set()
                self.during(cases)
            found = super().numpy_many(source, function, cases)
            failed = InvalidInput("reference", "the function failed: no")
            return [
                failed if self.fails(str(c[0].key), early) else f for c, f in zip(cases, found, strict=True)
            ]
        finally:
            self.busy -= 1


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Every thread of a test has ended with it; in each module that imports this fixture."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


class ObservedDevice(FakeDevice):
    """Calls `on_run` before each launch."""

    on_run: Callable[[], object]

    def run(self, *given: Any, **named: Any) -> RunReport:
        self.on_run()
        return super().run(*given, **named)


@dataclass
class ObservedOpener(FakeOpener):
    """Opens such devices."""

    on_run: Callable[[], object] = lambda: None

    def open(self) -> FakeDevice:
        device = ObservedDevice(self.info, self.model, self.fault, self.compiled)
        device.on_run = self.on_run
        self.opened.append(device)
        return device


def ports_with(
    reference: Reference,
    model: TimeModel = times,
    fault: Fault = lambda c: "",
    shares_host: bool = False,
    on_run: Callable[[], object] = lambda: None,
) -> SessionPorts:
    ports, opener = fake_ports(model, fault)
    info = DEVICE.model_copy(update={"shares_host": shares_host})
    observed = ObservedOpener(opener.model, opener.fault, opener.compiled, info, on_run=on_run)
    return replace(ports, opener=observed, reference=reference)
