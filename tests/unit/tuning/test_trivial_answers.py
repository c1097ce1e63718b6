"""Jobs that test nothing are refused with the field and the fix; what is written in part is said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from testbed.fakes import FakeReference, fake_ports
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.trivial_answers import untestable, written_in_part
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import Array

Inputs = Mapping[str, Any]
KERNEL: dict[str, Any] = scale_job().kernel.model_dump(mode="json", exclude_unset=True)
X, Y, N = KERNEL["arguments"]


@dataclass
class Answering(FakeReference):
    """A reference that makes `y` of the inputs in float64, and leaves other buffers as they are."""

    answer: Callable[[Inputs], Any]

    def numpy(
        self, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        with np.errstate(invalid="ignore", divide="ignore"):
            wide = {name: value.astype(np.float64) for name, value in draw_inputs(plan).items()}
            kept = {b.name: wide[b.name] for b in plan.mutated if b.name in wide}
            return kept | {"y": np.asarray(self.answer(wide))}


def session_of(answer: Callable[[Inputs], Any], job: Job) -> DeviceSession:
    ports, _ = fake_ports(lambda configuration, workload: 100.0)
    return DeviceSession(job, replace(ports, reference=Answering(answer)))


def baseline(answer: Callable[[Inputs], Any], **kernel: Any) -> BaselineResult:
    session = session_of(answer, scale_job(kernel=KERNEL | kernel))
    found = measure_baseline(session)
    session.close()
    return found


@pytest.mark.parametrize("function", [np.sqrt, np.log])
def test_an_output_that_is_often_nan_is_refused(function: Callable[[Any], Any]) -> None:
    refused = baseline(lambda inputs: function(inputs["x"])).refused
    assert "untestable: y is NaN in " in refused
    assert "(kernel.arguments.0.draw), such as {distribution: uniform, low: 0.1, high: 1}" in refused
    drawn = X | {"draw": {"distribution": "uniform", "low": 0.1, "high": 1}}
    assert "untestable" not in baseline(lambda inputs: function(inputs["x"]), arguments=[drawn, Y, N]).refused


def test_an_output_that_is_hardly_ever_a_number_is_refused_and_a_mask_is_not() -> None:
    def masked(inputs: Inputs, above: float) -> Any:
        return np.where(inputs["x"] < above, -np.inf, inputs["x"])

    assert "infinite in " in baseline(lambda inputs: masked(inputs, 2.0)).refused
    assert "untestable" not in baseline(lambda inputs: masked(inputs, 0.5)).refused


@pytest.mark.parametrize(
    ("declared", "is_named"),
    [
        ("__constant__ float c[9];\n#define C c", True),
        ("__constant__ float c;\n#define C c", True),
        ("__constant__ float c[9];", False),
        ("__constant__ float c[2] = {1, 2};", False),
        ("// __constant__ float c[9];", False),
    ],
)
def test_a_constant_that_nothing_fills_is_named(declared: str, is_named: bool) -> None:
    refused = baseline(lambda inputs: 0.0 * inputs["x"], source=f"{declared}\n{KERNEL['source']}").refused
    assert "untestable: zeros would pass" in refused
    assert ("nothing fills `__constant__ c`" in refused) is is_named


def test_a_draw_that_is_constant_is_named() -> None:
    drawn = X | {"draw": {"distribution": "constant", "low": 3}}
    refused = baseline(lambda inputs: 2.0 * inputs["x"], arguments=[drawn, Y, N]).refused
    assert "kernel.arguments.0.draw is constant" in refused


def test_an_answer_that_hardly_varies_is_refused() -> None:
    session = session_of(lambda inputs: 5.0 + 1e-6 * inputs["x"], scale_job())
    words = untestable(session, session.job.workloads[0])
    session.close()
    assert "untestable: a constant would pass the check" in words


def test_an_answer_without_its_inputs_is_named() -> None:
    refused = baseline(lambda inputs: np.arange(inputs["x"].size) + 0.0).refused
    assert "y does not depend on the inputs" in refused


@pytest.mark.parametrize(("kept", "is_said"), [(0, False), (1024, True)])
def test_the_part_of_an_inout_buffer_that_is_written_is_said(kept: int, is_said: bool) -> None:
    def answer(inputs: Inputs) -> Any:
        y = 2.0 * inputs["x"]
        y[:kept] = inputs["y"][:kept]
        return y

    job = scale_job(kernel=KERNEL | {"arguments": [X, Y | {"role": "inout"}, N]})
    session = session_of(answer, job)
    notes = written_in_part(session, job.workloads[0])
    session.close()
    assert notes == (
        ["n=4096: the kernel changes 3072 of 4096 elements (0.75) of y and keeps the rest"] if is_said else []
    )


@pytest.mark.parametrize(("share", "refused"), [(0.05, True), (0.03, False)])
def test_a_share_lets_no_trivial_answer_through(share: float, refused: bool) -> None:
    def one_in_25(inputs: Inputs) -> Any:
        x = inputs["x"]
        return np.where(np.arange(x.size) % 25 == 0, np.sign(x), 0.0)

    given = {"y": {"rtol": 0, "atol": 0, "share": share, "within": 1}}
    session = session_of(one_in_25, scale_job(kernel=KERNEL, tolerances=given))
    words = untestable(session, session.job.workloads[0])
    session.close()
    assert ("zeros would pass the check" in words) is refused


@pytest.mark.parametrize("role", ["input", "inout"])
def test_a_share_lets_no_copied_input_through(role: str) -> None:
    """An `inout` buffer that stays as it is has its copy as the right answer; `y` does not."""
    kernel = KERNEL | {"arguments": [X | {"role": role}, Y, N]}

    def nearly_copied(inputs: Inputs) -> Any:
        x = inputs["x"]
        return x + np.where(np.arange(x.size) % 25 == 0, 0.5, 0.0)

    for share, refused in ((0.05, True), (0.03, False)):
        given = {"y": {"rtol": 0, "atol": 0, "share": share, "within": 1}}
        session = session_of(nearly_copied, scale_job(kernel=kernel, tolerances=given))
        words = untestable(session, session.job.workloads[0])
        session.close()
        assert ("a copied input would pass" in words) is refused
