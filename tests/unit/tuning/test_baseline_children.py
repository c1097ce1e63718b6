"""How many processes a baseline opens, and what it does when one of them ends."""

from dataclasses import dataclass, replace

from testbed.fakes import FakeDevice, FakeOpener, fake_ports
from tests.unit.tuning.test_ceilings import HIGH, Store
from warpsmith.domain.jobs.plan import CaseKey
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import ChildDied
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts

LISTED = {w.key for w in scale_job().workloads}


def steady(configuration: Configuration, workload: str) -> float:
    return 100.0


def ports() -> tuple[SessionPorts, FakeOpener]:
    made, opener = fake_ports(steady)
    return replace(made, ceilings=Store(HIGH)), opener


def test_a_baseline_opens_a_child_and_another_for_the_noise() -> None:
    made, opener = ports()
    session = DeviceSession(scale_job(), made)
    assert measure_baseline(session).refused == ""
    assert len(opener.opened) == 2
    session.close()
    assert all(device.dead for device in opener.opened)


def test_with_the_kernel_as_its_own_reference_it_opens_one_more() -> None:
    made, opener = ports()
    session = DeviceSession(scale_job(reference={"kind": "kernel"}), made)
    assert measure_baseline(session).refused == ""
    assert len(opener.opened) == 3
    session.close()
    assert all(device.dead for device in opener.opened)


@dataclass
class Damaged(FakeDevice):
    """Its heap is damaged, which shows when the buffers of a listed workload are freed."""

    def release(self, case: CaseKey) -> None:
        if case.is_own_draw and case.workload in LISTED:
            self.dead = True
            raise ChildDied("signal", "ended by SIGABRT")
        super().release(case)


def test_other_shapes_are_tried_in_a_new_child_if_the_first_was_damaged() -> None:
    made, opener = ports()
    plain = opener.open

    def open_damaged() -> FakeDevice:
        device = plain()
        if len(opener.opened) == 1:
            device.__class__ = Damaged
        return device

    opener.open = open_damaged  # type: ignore[method-assign]
    found = measure_baseline(DeviceSession(scale_job(), made))
    assert found.refused == ""
    assert opener.opened[0].dead
    assert [c for c in found.cases if c.neighbour_of]
