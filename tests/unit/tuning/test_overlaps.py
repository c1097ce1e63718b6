"""What of a comparison goes on at the same time: processes open in pairs, checks and sanitizers overlap."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from testbed.deadlines import HANGS_S
from testbed.fakes import FakeDevice, FakeOpener, fake_ports
from testbed.sanitizer import NothingWaits
from tests.unit.tuning.observed_references import Reference, nothing_stays, ports_with
from tests.unit.tuning.test_tuning_loops import JOB, finalists, times
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import noises
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks import reference_prefetch
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch
from warpsmith.tuning.execution.session_ports import Case, SessionPorts
from warpsmith.tuning.outputs.output_checker import OutputChecker
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import VerifyResult
from warpsmith.tuning.winners.process_pairs import PROCESSES
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners
from warpsmith.verify.run_report import ReferenceCase

__all__ = ["nothing_stays"]

APART_S = 0.2
"""How long something waits for what should happen meanwhile, if it does not."""


def verified(ports: SessionPorts, begin: Callable[[], object] = lambda: None) -> VerifyResult:
    """Winners of a search.

    Args:
        begin: called between the search and the verification.
    """
    known = measure_baseline(DeviceSession(JOB, fake_ports(times)[0]))
    plan = ComparisonPlan(4 * PROCESSES, noises(0.001))
    found = finalists()[0]
    begin()
    return verify_winners(JOB, ports, found, plan, lambda: True, known)


@dataclass
class PairedOpener(FakeOpener):
    """Says how many processes were being opened at once."""

    opening: int = 0
    most: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def open(self) -> FakeDevice:
        with self.changed:
            self.opening += 1
            self.most = max(self.most, self.opening)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.opening > 1, APART_S)
        made = super().open()
        with self.changed:
            self.opening -= 1
        return made


def test_both_processes_of_a_pair_open_at_the_same_time() -> None:
    ports, plain = fake_ports(times)
    opener = PairedOpener(plain.model, plain.fault, plain.compiled)
    verified(replace(ports, opener=opener))
    assert opener.most == 2


def test_the_user_kernel_has_its_process_while_a_winner_is_checked() -> None:
    """A winner that is wrong is never timed: a pair of processes opened at once can only be the first."""
    ports, plain = fake_ports(times, lambda c: "wrong" if c.get("BLOCK") else "")
    opener = PairedOpener(plain.model, plain.fault, plain.compiled)
    found = verified(replace(ports, opener=opener))
    assert found.comparisons == ()
    assert found.withdrawn
    assert opener.most == 2


@dataclass
class Sanitizer(NothingWaits):
    """Inspects two binaries at once, and looks at the device meanwhile."""

    timed: list[str]
    inspected: list[bytes] = field(default_factory=list)
    timed_meanwhile: list[str] = field(default_factory=list)
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=HANGS_S))

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        before = len(self.timed)
        self.inspected.append(compiled.binary)
        self.meeting.wait()
        time.sleep(APART_S)
        self.timed_meanwhile += self.timed[before:]
        return {}


def test_all_winners_are_inspected_at_once_and_nothing_is_timed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)))
    timed: list[str] = []

    def model(configuration: Configuration, workload: str) -> float:
        if configuration:
            timed.append(workload)
        return times(configuration, workload)

    sanitizer = Sanitizer(timed)
    verified(replace(ports_with(Reference(), model), sanitizer=sanitizer))
    assert len(set(sanitizer.inspected)) == 2, "one binary for each workload"
    assert sanitizer.timed_meanwhile == []


def test_a_case_is_compared_while_the_next_one_is_on_the_device(monkeypatch: Any) -> None:
    ran = threading.Event()
    met: list[bool] = []
    evaluate = OutputChecker.evaluate
    checking = threading.Event()

    def waiting(self: OutputChecker, launch: Any) -> Any:
        if threading.current_thread().name.startswith("compare") and not met:
            ran.clear()
            checking.set()
            met.append(ran.wait(HANGS_S))
        return evaluate(self, launch)

    def on_run() -> None:
        if threading.current_thread() is threading.main_thread() and not met:
            checking.wait(APART_S)
        ran.set()

    ports = ports_with(Reference(), on_run=on_run)
    verified(ports, lambda: monkeypatch.setattr(OutputChecker, "evaluate", waiting))
    assert met
    assert all(met), "of two threads that compare both may come first"


def test_a_wrong_case_is_refused_whatever_came_after_it() -> None:
    ports, _ = fake_ports(times, lambda c: "wrong" if c.get("BLOCK") == 256 else "")
    found = verified(ports)
    assert all("y is wrong" in str(fallen) for fallen in found.withdrawn)


def test_what_is_ready_is_returned_while_something_else_is_computed() -> None:
    end = threading.Event()

    def during(cases: Sequence[ReferenceCase]) -> None:
        if cases[0][0].workload != "n=4096":
            assert end.wait(HANGS_S)

    reference = Reference(during)
    session = DeviceSession(JOB, ports_with(reference))
    prefetch = ReferencePrefetch(reference)
    try:
        prefetch.start(session, [Case(w) for w in JOB.workloads])
        deadline = time.monotonic() + HANGS_S
        while len(reference.early) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        large = session.inputs.plan(JOB.workloads[0])
        prefetch.numpy_many("", "", [(large, JOB.workloads[0].dimensions)])
        assert not end.is_set()
        assert reference.busy == 1
    finally:
        end.set()
        prefetch.close()


def test_what_is_kept_beforehand_is_filled_up_when_something_was_taken(monkeypatch: Any) -> None:
    monkeypatch.setattr(reference_prefetch, "CACHED_BYTES", 2 * 8 * 1001)
    reference = Reference()
    session = DeviceSession(JOB, ports_with(reference))
    small = next(w for w in JOB.workloads if w.dimensions["n"] == 1001)
    cases = [Case(small, variant=v) for v in range(4)]
    plans = [(session.inputs.plan(c), small.dimensions) for c in cases]
    prefetch = ReferencePrefetch(reference)
    try:
        prefetch.start(session, cases)
        deadline = time.monotonic() + HANGS_S
        while len(reference.early) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(APART_S)
        assert len(reference.early) == 2, "no more has room"
        prefetch.numpy_many("", "", plans[:2])
        while len(reference.early) < 4 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert len(reference.early) == 4
        assert reference.asked == []
    finally:
        prefetch.close()
