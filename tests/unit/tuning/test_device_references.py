"""What a device computes may pass a kernel; what it finds wrong is judged by NumPy, whoever asks."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from testbed.fakes import FakeReference, fake_ports
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.outputs import expected_outputs
from warpsmith.tuning.session.device_session import Case, DeviceSession
from warpsmith.verify.run_report import Array, ReferenceCase

Outcomes = Sequence[Mapping[str, Array] | InvalidInput]


@dataclass
class OnDevice(FakeReference):
    """A device whose answers are off by a number, or which has none."""

    off: float = 0.0
    lacks: bool = False
    asked: list[str] = field(default_factory=list)

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        self.asked += [plan.workload for plan, _ in cases]
        if self.lacks:
            return [InvalidInput("reference", "no such function") for _ in cases]
        found = super().numpy_many(source, function, cases)
        assert not any(isinstance(outputs, InvalidInput) for outputs in found)
        return [{n: a.astype(float) + self.off for n, a in dict(outputs).items()} for outputs in found]  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def every_case_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_outputs, "DEVICE_ELEMENTS", 1)


def session(device: OnDevice) -> DeviceSession:
    ports, _ = fake_ports(lambda configuration, workload: 100.0)
    return DeviceSession(scale_job(), replace(ports, device_reference=device))


def test_what_the_device_computes_is_used() -> None:
    device = OnDevice()
    made = session(device)
    assert measure_baseline(made).refused == ""
    assert device.asked
    made.close()


def test_a_device_that_is_wrong_refuses_no_kernel() -> None:
    made = session(OnDevice(off=1000.0))
    assert measure_baseline(made).refused == ""
    made.close()


def test_a_device_that_cannot_compute_it_is_asked_no_more() -> None:
    device = OnDevice(lacks=True)
    made = session(device)
    made.expected.compute([Case(w) for w in made.job.workloads])
    made.expected.compute([made.inputs.another_draw(w) for w in made.job.workloads])
    assert len(device.asked) == 1
    made.close()


def test_every_thread_that_asks_gets_the_last_word() -> None:
    made = session(OnDevice(off=1000.0))
    case = Case(made.job.workloads[0])
    wrong = made.expected.of(case)
    meeting = threading.Barrier(4)

    def ask() -> bool:
        meeting.wait()
        return made.expected.judged_by_numpy(case)

    with ThreadPoolExecutor(4) as threads:
        assert all(future.result() for future in [threads.submit(ask) for _ in range(4)])
    assert not np.array_equal(made.expected.of(case)["y"], wrong["y"])
    made.close()


def test_what_numpy_computed_alone_is_judged_once() -> None:
    ports, _ = fake_ports(lambda configuration, workload: 100.0)
    made = DeviceSession(scale_job(), ports)
    case = Case(made.job.workloads[0])
    made.expected.of(case)
    assert not made.expected.judged_by_numpy(case)
    made.close()
