"""References of the next workload: computed while the device is busy, never while anything is timed."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait

import pytest

from testbed.deadlines import HANGS_S
from testbed.fakes import FakeReference, fake_ports
from tests.unit.tuning.observed_references import Outcomes, Reference, nothing_stays, ports_with
from tests.unit.tuning.test_tuning_loops import finalists, times
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks import reference_prefetch as module
from warpsmith.tuning.checks.extra_cases import certain_cases
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch, may_overlap, prefetch_references
from warpsmith.tuning.execution.session_ports import Case, SessionPorts
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult, VerifyResult
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners
from warpsmith.verify.run_report import ReferenceCase

__all__ = ["nothing_stays"]

JOB = scale_job()
LARGE, SMALL = "n=4096", "n=1001"
SHORT_S = 0.02
"""How long a reference waits for what must not happen meanwhile."""

Phase = Callable[[SessionPorts], VerifyResult | BaselineResult]


def verify(
    ports: SessionPorts, alive: Callable[[], bool] = lambda: True, noise: float = 0.001
) -> VerifyResult:
    known = measure_baseline(DeviceSession(JOB, fake_ports(times)[0]))
    return verify_winners(JOB, ports, finalists()[0], ComparisonPlan(6, noises(noise)), alive, known)


def baseline_of(ports: SessionPorts) -> BaselineResult:
    return measure_baseline(DeviceSession(JOB, ports))


PHASES = pytest.mark.parametrize("phase", [verify, baseline_of])


@PHASES
def test_the_device_runs_while_references_of_the_next_workload_are_computed(phase: Phase) -> None:
    computing, ran = threading.Event(), threading.Event()
    met: list[bool] = []

    def during(cases: Sequence[ReferenceCase]) -> None:
        if {plan.workload for plan, _ in cases} == {SMALL}:
            computing.set()
            met.append(ran.wait(HANGS_S))

    def on_run() -> None:
        if all(met):
            met.append(computing.wait(HANGS_S))
        ran.set()

    reference = Reference(during)
    phase(ports_with(reference, on_run=on_run))
    assert met
    assert all(met)
    assert SMALL in reference.early


def verify_near_ties(ports: SessionPorts) -> VerifyResult:
    return verify(ports, noise=0.2)


@pytest.mark.parametrize("phase", [verify, verify_near_ties, baseline_of])
def test_what_is_computed_stands_still_while_anything_is_timed(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    runs: list[bool] = []

    def model(configuration: Configuration, workload: str) -> float:
        if configuration:
            runs.append(reference.going.is_set())
        return times(configuration, workload)

    reference = Reference()
    phase(ports_with(reference, model, on_run=reference.waited_for))
    assert runs
    assert not any(runs)
    assert reference.going.is_set()
    assert reference.early, "there was something to halt"


def test_a_pause_does_not_wait_for_what_has_begun() -> None:
    end, begun = threading.Event(), threading.Event()

    def during(cases: Sequence[ReferenceCase]) -> None:
        begun.set()
        assert end.wait(HANGS_S)

    reference = Reference(during)
    session = DeviceSession(JOB, ports_with(reference))
    prefetch = ReferencePrefetch(reference)
    try:
        prefetch.start(session, [Case(w) for w in JOB.workloads])
        assert begun.wait(HANGS_S)
        with prefetch.paused():
            with prefetch.paused():
                assert not reference.going.is_set()
            assert not reference.going.is_set(), "the outer pause goes on"
            assert reference.busy == 1
        assert reference.going.is_set()
    finally:
        end.set()
        prefetch.close()
    assert reference.halts == 1


@PHASES
def test_nothing_overlaps_where_kernels_run_on_the_hosts_cores(phase: Phase) -> None:
    reference = Reference()
    phase(ports_with(reference, shares_host=True))
    assert reference.early == []
    assert {SMALL, LARGE} <= set(reference.asked)


@PHASES
def test_everything_is_computed_once(phase: Phase) -> None:
    reference = Reference()
    phase(ports_with(reference, on_run=reference.waited_for))
    computed = reference.early + reference.asked
    assert sorted(computed) == sorted(set(computed))
    assert {LARGE, SMALL} <= set(reference.early), "before anybody asks"


@PHASES
def test_results_are_those_of_a_host_that_computes_nothing_beforehand(phase: Phase) -> None:
    early, late = phase(ports_with(Reference())), phase(ports_with(Reference(), shares_host=True))
    if isinstance(early, VerifyResult):
        assert isinstance(late, VerifyResult)
        assert [(c.workload, c.configuration) for c in early.choices] == [
            (c.workload, c.configuration) for c in late.choices
        ]
    else:
        assert isinstance(late, BaselineResult)
        assert [t.workload for t in early.timings] == [t.workload for t in late.timings]
        # Sizes are those of secret draws, which no two measurements share.
        found, wanted = (
            [c.model_dump(exclude={"sizes"}) for c in side.cases if c.neighbour_of] for side in (early, late)
        )
        assert found == wanted
        assert all(c.sizes.keys() == {"y"} for side in (early, late) for c in side.cases)


def test_a_user_kernel_that_is_the_reference_is_never_run_beforehand() -> None:
    job = scale_job(reference={"kind": "kernel"})
    reference = Reference()
    ports = ports_with(reference)
    assert not may_overlap(DeviceSession(job, ports))
    assert measure_baseline(DeviceSession(job, ports)).refused == ""
    assert reference.early == reference.asked == []


@pytest.mark.parametrize("shares_host", [False, True])
def test_a_reference_that_fails_is_told_in_its_turn(shares_host: bool) -> None:
    timed: list[str] = []

    def model(configuration: Configuration, workload: str) -> float:
        if configuration:
            timed.append(workload)
        return times(configuration, workload)

    def ports() -> SessionPorts:
        timed.clear()
        return ports_with(Reference(fails=lambda key, _: key == SMALL), model, shares_host=shares_host)

    assert baseline_of(ports()).refused == "reference: the function failed: no"
    assert set(timed) == {LARGE}
    with pytest.raises(InvalidInput, match="the function failed: no"):
        verify(ports())


def test_what_fails_only_beforehand_is_computed_again() -> None:
    reference = Reference(fails=lambda key, early: early)
    assert len(verify(ports_with(reference, on_run=reference.waited_for)).choices) == 2
    assert set(reference.early) <= set(reference.asked)


def test_an_error_of_ours_is_raised_where_it_is_waited_for() -> None:
    def during(cases: Sequence[ReferenceCase]) -> None:
        raise OSError("no process can be started")

    reference = Reference(during)
    assert len(verify(ports_with(reference, on_run=reference.waited_for)).choices) == 2
    assert set(reference.early) <= set(reference.asked)


def test_a_workload_that_is_never_reached_does_no_harm() -> None:
    reference = Reference(fails=lambda key, _: key.startswith(SMALL))
    ports = ports_with(reference, fault=lambda c: "wrong", on_run=reference.waited_for)
    refused = baseline_of(ports).refused
    assert refused.startswith(f"{LARGE}: the kernel fails: y is wrong")
    assert reference.early
    assert reference.busy == 0
    assert not any(key.startswith(SMALL) and "#" not in key for key in reference.asked)


def test_what_has_begun_is_waited_for_when_the_work_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    ending = threading.Event()

    def told_to_rest(futures: Sequence[Future[None]]) -> None:
        # The thread is waited for when it has been told to rest.
        ending.set()
        wait(futures)

    def during(cases: Sequence[ReferenceCase]) -> None:
        ending.wait(HANGS_S)

    monkeypatch.setattr(module, "wait", told_to_rest)
    reference = Reference(during)
    session = DeviceSession(JOB, ports_with(reference))
    own = session.expected.reference
    with pytest.raises(RuntimeError), prefetch_references(session) as prefetch:
        prefetch.start(session, [Case(w) for w in JOB.workloads])
        reference.waited_for()
        raise RuntimeError
    assert reference.busy == 0
    assert reference.early == [LARGE], "what had not begun is left"
    assert session.expected.reference is own


def test_only_so_many_bytes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_BYTES", 8 * 2 * 1001)
    reference = Reference()
    verify(ports_with(reference, on_run=reference.waited_for))
    assert len(reference.early) <= 2 * len(JOB.workloads), "two for each time that something is wanted"
    assert SMALL in reference.early


def test_a_pause_ends_and_the_rest_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    steps: list[threading.Event] = [threading.Event() for _ in range(3)]
    reference = Reference(lambda cases: steps[len(reference.early) - 1].set())
    session = DeviceSession(JOB, ports_with(reference))
    prefetch = ReferencePrefetch(reference)
    cases = [Case(Workload(dimensions={"n": n})) for n in (10, 11, 12)]
    try:
        with prefetch.paused():
            prefetch.start(session, cases)
            assert not steps[0].wait(SHORT_S)
            plan = session.inputs.plan(cases[1])
            (found,) = prefetch.numpy_many("", "", [(plan, cases[1].workload.dimensions)])
            assert isinstance(found, Mapping)
        assert all(step.wait(HANGS_S) for step in steps[:2])
    finally:
        prefetch.close()
    assert reference.early == ["n=10", "n=12"]
    assert reference.asked == ["n=11"]


def test_certain_cases_are_what_a_winner_is_checked_with(monkeypatch: pytest.MonkeyPatch) -> None:
    session = DeviceSession(JOB, ports_with(Reference()))
    session.baseline.learn(measure_baseline(DeviceSession(JOB, fake_ports(times)[0])))
    workload = JOB.workloads[1]
    own = [Case(workload), session.inputs.another_draw(workload)]
    here = [c for c in session.baseline.cases if c.dimensions == workload.dimensions]
    families = [Case(workload, c.family) for c in here if c.family is not Family.EDGE_CASE][1:]
    assert families
    assert certain_cases(session, workload) == own + families
    monkeypatch.setattr("warpsmith.tuning.checks.extra_cases.FAMILY_BYTES", 8)
    assert certain_cases(session, workload) == own


class SlowReference(FakeReference):
    """Answers when it is let; remembers whether it was halted meanwhile."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.halted = threading.Event(), threading.Event(), threading.Event()

    def halt(self) -> None:
        self.halted.set()

    def go_on(self) -> None:
        self.halted.clear()

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        self.begun.set()
        assert self.may_end.wait(HANGS_S)
        return [InvalidInput("reference", "none") for _ in cases]


def test_a_reference_that_a_thread_waits_for_is_not_halted_by_the_pause_of_another() -> None:
    inner = SlowReference()
    prefetch = ReferencePrefetch(inner)
    session = DeviceSession(JOB, fake_ports(lambda *_: 1.0)[0])
    case = (session.inputs.plan(Case(JOB.workloads[0])), JOB.workloads[0].dimensions)
    caller = threading.Thread(target=prefetch.numpy_many, args=("", "", [case]))
    try:
        caller.start()
        assert inner.begun.wait(HANGS_S)
        with prefetch.paused():
            assert not inner.halted.is_set()
            inner.may_end.set()
            caller.join(HANGS_S)
            assert inner.halted.is_set(), "nobody waits any longer, and the pause goes on"
        assert not inner.halted.is_set()
    finally:
        inner.may_end.set()
        caller.join(HANGS_S)
        prefetch.close()
        session.close()
