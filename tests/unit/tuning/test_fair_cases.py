"""A candidate is not refused on a draw on which the user's kernel does the same, and on no other."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from testbed.fakes import FakeDevice, FakeOpener, fake_ports
from tests.unit.tuning.test_tuning_loops import times
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import CaseKey, Family
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import ChildDied
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.verify.run_report import RunReport

JOB = scale_job()
LARGE = JOB.workloads[0]
CANDIDATE: Configuration = {"BLOCK": 128, "PER": 2}
Wrong = Callable[[bool, CaseKey], bool]
"""Whether a kernel is wrong: is it the user's, and on which inputs does it run."""


def nowhere(own: bool, case: CaseKey) -> bool:
    return False


@dataclass
class Devices(FakeOpener):
    """Devices on which kernels are wrong, or write outside their buffers, as the test says."""

    wrong: Wrong = nowhere
    overruns: Wrong = nowhere
    dies: bool = False
    """Whether the user's kernel ends its process."""
    own_runs: list[CaseKey] = field(default_factory=list)

    def open(self) -> FakeDevice:
        device, opener = super().open(), self

        class Device(type(device)):  # type: ignore[misc]
            def run(self, handle: int, case: CaseKey, *rest: Any, **named: Any) -> RunReport:
                own = self.loaded[handle] == JOB.space.defaults
                if own:
                    opener.own_runs.append(case)
                if own and opener.dies:
                    raise ChildDied("signal", "ended by SIGABRT")
                report: RunReport = super().run(handle, case, *rest, **named)
                if opener.overruns(own, case):
                    report = replace(report, guard_violations=("y",))
                if not opener.wrong(own, case):
                    return report
                return replace(report, outputs={"y": 2 * np.abs(report.outputs["y"]) + 100})

        device.__class__ = Device
        return device


def session(wrong: Wrong, overruns: Wrong = nowhere, *, dies: bool = False) -> tuple[DeviceSession, Devices]:
    """A session that knows the baseline of a kernel that was right wherever it was tried."""
    ports, opener = fake_ports(times)
    made = measure_baseline(DeviceSession(JOB, ports))
    assert made.refused == ""
    behaviour: dict[str, Any] = {"wrong": wrong, "overruns": overruns, "dies": dies}
    devices = Devices(opener.model, opener.fault, opener.compiled, **behaviour)
    found = DeviceSession(JOB, replace(ports, opener=devices))
    found.baseline.learn(made)
    return found, devices


def checked(of: DeviceSession, case: Case) -> CheckResult:
    kernel = of.inputs.user_template.configured(CANDIDATE)
    compiled = of.compile(kernel)
    assert not isinstance(compiled, Rejected)
    handle = of.device(case).load(compiled)
    size = launch_size(kernel, case.workload, DEVICE)
    return of.checker.check(LoadedKernel(handle, case.workload, size), whole=True, on=case)


UNLUCKY = Case(LARGE, Family.SPIKE, 4321)
NEIGHBOUR = Case(Workload(dimensions={"n": 97}))


def wrong_on(unlucky: Case, *, own: bool = True, candidate: bool = True) -> Wrong:
    return lambda is_own, case: case == unlucky.key and (own if is_own else candidate)


@pytest.mark.parametrize("case", [UNLUCKY, NEIGHBOUR])
def test_a_draw_on_which_both_are_wrong_refuses_nobody_and_is_tried_once(case: Case) -> None:
    made, devices = session(wrong_on(case))
    try:
        assert [checked(made, case) for _ in range(3)] == [0.0] * 3
    finally:
        made.close()
    assert devices.own_runs == [case.key]
    assert all(device.dead for device in devices.opened)


def test_a_candidate_that_alone_is_wrong_is_refused() -> None:
    made, devices = session(wrong_on(UNLUCKY, own=False))
    try:
        for _ in range(2):
            found = checked(made, UNLUCKY)
            assert isinstance(found, Rejected)
            assert found.stage is Stage.CORRECTNESS
    finally:
        made.close()
    assert devices.own_runs == [UNLUCKY.key]


def test_a_shape_at_which_both_write_outside_refuses_nobody_and_is_tried_once() -> None:
    made, devices = session(nowhere, wrong_on(NEIGHBOUR))
    try:
        assert [checked(made, NEIGHBOUR) for _ in range(3)] == [0.0] * 3
    finally:
        made.close()
    assert devices.own_runs == [NEIGHBOUR.key]
    assert all(device.dead for device in devices.opened)


def test_a_write_outside_at_a_shape_is_seen_on_its_usual_inputs_if_not_on_these() -> None:
    zeros = Case(NEIGHBOUR.workload, Family.EDGE_CASE, 6)
    made, devices = session(nowhere, lambda own, case: case in (zeros.key, NEIGHBOUR.key)[own:])
    try:
        assert checked(made, zeros) == 0.0
    finally:
        made.close()
    assert set(devices.own_runs) == {zeros.key, NEIGHBOUR.key}


@pytest.mark.parametrize(
    ("wrong", "overruns", "case", "stage"),
    [
        pytest.param(nowhere, wrong_on(NEIGHBOUR, own=False), NEIGHBOUR, Stage.GUARD, id="alone"),
        pytest.param(nowhere, wrong_on(UNLUCKY), UNLUCKY, Stage.GUARD, id="at-a-listed-shape"),
        pytest.param(
            wrong_on(NEIGHBOUR, candidate=False),
            wrong_on(NEIGHBOUR, own=False),
            NEIGHBOUR,
            Stage.GUARD,
            id="where-the-user-s-is-wrong",
        ),
        pytest.param(
            wrong_on(NEIGHBOUR, own=False),
            wrong_on(NEIGHBOUR, candidate=False),
            NEIGHBOUR,
            Stage.CORRECTNESS,
            id="wrong-where-the-user-s-writes-outside",
        ),
    ],
)
def test_what_the_user_s_kernel_does_not_do_there_is_refused(
    wrong: Wrong, overruns: Wrong, case: Case, stage: Stage
) -> None:
    made, _ = session(wrong, overruns)
    try:
        for _ in range(2):
            found = checked(made, case)
            assert isinstance(found, Rejected)
            assert found.stage is stage
    finally:
        made.close()


def test_what_a_workload_is_timed_with_excuses_nobody() -> None:
    made, devices = session(wrong_on(Case(LARGE)))
    try:
        assert isinstance(checked(made, Case(LARGE)), Rejected)
    finally:
        made.close()
    assert devices.own_runs == []


def test_a_kernel_that_cannot_be_asked_excuses_nobody() -> None:
    made, _ = session(wrong_on(UNLUCKY), dies=True)
    try:
        assert isinstance(checked(made, UNLUCKY), Rejected)
    finally:
        made.close()


def test_a_right_candidate_costs_no_launch_of_the_user_s_kernel() -> None:
    made, devices = session(wrong_on(UNLUCKY, candidate=False))
    try:
        assert not isinstance(checked(made, UNLUCKY), Rejected)
    finally:
        made.close()
    assert devices.own_runs == []


def test_inputs_that_were_unfair_are_replaced_and_fair_ones_stay() -> None:
    for own in (True, False):
        made, _ = session(lambda is_own, case, own=own: case.variant != 0 and (own or not is_own))  # type: ignore[misc]
        try:
            before = made.inputs.other(LARGE)
            checked(made, before)
            after = made.inputs.other(LARGE)
        finally:
            made.close()
        assert (after != before) is own
        assert not own or after.family is Family.DECLARED


def test_a_sibling_knows_what_the_session_found() -> None:
    made, devices = session(wrong_on(UNLUCKY))
    sibling = made.sibling()
    try:
        assert checked(made, UNLUCKY) == checked(sibling, UNLUCKY) == 0.0
    finally:
        sibling.close()
        made.close()
    assert len(devices.own_runs) == 1
