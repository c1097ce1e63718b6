"""Several references of one call: children side by side, as many as cores, work and memory allow."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from testbed.deadlines import stretched
from tests.sandbox.kernels import plan
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.errors import InvalidInput
from warpsmith.sandbox import ReferenceRunner
from warpsmith.sandbox.hosts import reference_host
from warpsmith.sandbox.transport.process import ChildProcess
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import Array, ReferenceCase

PID = "import os\ndef reference(inputs, dims):\n    return {'y': np.full(dims['n'], os.getpid())}"
THIRD = "def reference(inputs, dims):\n    return {'y': inputs['x'] / 3}"


def cases(sizes: range) -> list[ReferenceCase]:
    return [(plan(n), {"n": n}) for n in sizes]


def processes(runner: ReferenceRunner, asked: Sequence[ReferenceCase]) -> int:
    found = runner.numpy_many(PID, "reference", asked)
    assert all(isinstance(f, Mapping) for f in found)
    return len({float(f["y"][0]) for f in found if isinstance(f, Mapping)})


def test_results_come_in_the_order_of_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_host, "ELEMENTS_EACH", 100)
    asked = cases(range(100, 112))
    found = ReferenceRunner(children=3).numpy_many(THIRD, "reference", asked)
    for (of, _), outputs in zip(asked, found, strict=True):
        assert isinstance(outputs, Mapping)
        want = draw_inputs(of)["x"].astype(np.float64) / 3
        np.testing.assert_array_equal(outputs["y"], want)


def test_small_cases_share_a_child_and_large_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = ReferenceRunner(children=3)
    assert processes(runner, cases(range(100, 104))) == 1
    monkeypatch.setattr(reference_host, "ELEMENTS_EACH", 100)
    slow = [(plan(1 << 20), {"n": 1 << 20})] * 4
    assert 1 < processes(runner, slow) <= 3


def test_children_are_no_more_than_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_host, "ELEMENTS_EACH", 1)
    elements = 1 << 22  # of each of two buffers
    height = 2 * elements * reference_host.ROOM * reference_host.WIDE_BYTES
    asked = [(plan(elements), {"n": elements})] * 3
    assert processes(ReferenceRunner(memory_bytes=2 * height - 1, children=3), asked) == 1


class Crowded(ReferenceRunner):
    """Its first computation of every case fails."""

    asked: list[str] = []
    how: type[InvalidInput] = InvalidInput

    def _ask(
        self, child: ChildProcess, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        self.asked.append(repr(dims))
        if self.asked.count(repr(dims)) == 1:
            raise self.how("reference", "MemoryError")
        return super()._ask(child, source, function, plan, dims)


@pytest.mark.parametrize("late", [False, True])
def test_what_fails_in_company_is_computed_alone_unless_it_took_too_long(
    monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr(reference_host, "ELEMENTS_EACH", 100)
    monkeypatch.setattr(Crowded, "asked", [])
    monkeypatch.setattr(Crowded, "how", reference_host._TooLate if late else InvalidInput)
    found = Crowded(children=2).numpy_many(THIRD, "reference", cases(range(100, 104)))
    assert [isinstance(f, InvalidInput) for f in found] == [late] * 4


def test_cases_without_end_wait_for_one_deadline_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_host, "ELEMENTS_EACH", 100)
    source = "def reference(inputs, dims):\n    while True: pass"
    started, limit_s = time.monotonic(), stretched(2)
    runner = ReferenceRunner(timeout_s=limit_s, children=3)
    found = runner.numpy_many(source, "reference", cases(range(100, 103)))
    assert all(f"ran past {limit_s:g} s" in str(f) for f in found)
    assert time.monotonic() - started < 2.5 * limit_s
