"""Kernels that write part of their output, on a real device: what counts is checked, the rest never."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.sandbox.kernels import built, expected, floats, plan, size, source
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.memory import MAX_SETS
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, TimedCheck, TimingPlan
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.execution.session_ports import LoadedKernel
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts

ROWS = """
__kernel void rows(__global const float* x, __global const int* lengths, __global float* y, const int columns,
                   const int stride) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < STOP; i += get_local_size(0))
    y[row * stride + i] = i < columns ? 2.0f * x[row * columns + i] : REST;
}
"""
REFERENCE = """
import numpy as np

def reference(inputs, dims):
    y = np.full((dims["rows"], dims["columns"] + 24), np.nan)
    y[:, :dims["columns"]] = 2.0 * inputs["x"]
    return {"y": y}
"""


def job(
    kept: str, stop: str = "columns", reference: str = "numpy", rest: str = "0.0f", **lengths: Any
) -> Job:
    drawn = {"distribution": "integers", "low": 0, "high": "columns + 1"} | lengths
    text = f"#define STOP ({stop})\n#define REST ({rest})\n{ROWS}"
    arguments = [
        {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
        {"name": "lengths", "dtype": "int32", "role": "input", "shape": ["rows"], "draw": drawn},
        {"name": "y", "dtype": "float32", "role": "output", "shape": ["rows", "columns + 24"], "kept": kept},
        {"name": "columns", "dtype": "int32", "role": "scalar", "value": "columns"},
        {"name": "stride", "dtype": "int32", "role": "scalar", "value": "columns + 24"},
    ]
    kernel: dict[str, Any] = {"backend": "opencl", "source": text, "entry": "rows", "arguments": arguments}
    kernel["launch"] = {"grid": ["rows"], "block": [64]}
    given = {"kind": "numpy", "source": REFERENCE} if reference == "numpy" else {"kind": "kernel"}
    workloads = [{"dimensions": {"rows": 32, "columns": 200}}]
    return scale_job(name="rows", kernel=kernel, workloads=workloads, reference=given, parameters=[])


N = 4096


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


@pytest.fixture
def sessions(ports: SessionPorts) -> Iterator[Any]:
    made: list[DeviceSession] = []

    def session(of: Job) -> DeviceSession:
        made.append(DeviceSession(of, ports))
        return made[-1]

    yield session
    for each in made:
        each.close()


def judged(session: DeviceSession, other: Job, *, whole: bool) -> CheckResult:
    """What another job's kernel leaves, as a candidate: once and again on its output, half of it spoiled."""
    kernel = Template(kernel=other.kernel, space=other.space).configured({})
    compiled = session.compile(kernel)
    assert isinstance(compiled, Compiled)
    workload = session.job.workloads[0]
    handle = session.device(workload).load(compiled)
    loaded = LoadedKernel(handle, workload, launch_size(kernel, workload, session.info))
    return session.checker.check(loaded, whole=whole, repeat=True)


@pytest.mark.parametrize("reference", ["numpy", "kernel"])
@pytest.mark.parametrize(
    ("kept", "stop", "words"),
    [
        ("i1 < columns", "columns", "6400 of 7168 elements (0.89) of y count (kept: i1 < columns)"),
        ("i1 < lengths", "lengths[row]", "of 7168 elements (0."),
    ],
)
def test_a_kernel_that_writes_what_counts_is_tuned_and_the_notes_say_how_much(
    sessions: Any, kept: str, stop: str, words: str, reference: str
) -> None:
    found = measure_baseline(sessions(job(kept, stop, reference)))
    assert found.refused == ""
    (note,) = [n for n in found.notes if "the others are not compared" in n]
    assert words in note
    assert len(found.cases) > 20, "families, shapes and worlds are tried as ever"


def test_without_it_the_same_kernel_is_refused_and_told_of_it(sessions: Any) -> None:
    plain = job("i1 < columns", reference="kernel").model_dump(mode="json")
    del plain["kernel"]["arguments"][2]["kept"]
    refused = measure_baseline(sessions(Job.model_validate(plain))).refused
    assert "elements were never written" in refused
    assert "`kept` says which elements count if nobody reads these" in refused


def test_an_output_of_which_nothing_counts_is_refused_with_its_field(sessions: Any) -> None:
    refused = measure_baseline(sessions(job("i1 < 0"))).refused
    assert "kernel.arguments.2.kept: no element of y counts: 'i1 < 0' is true of none; mend it" in refused
    empty = job("i1 < lengths", "lengths[row]", low=0, high=1)
    refused = measure_baseline(sessions(empty)).refused
    assert "is true of none with the lengths that are drawn; mend it, or draw other values" in refused


def test_few_elements_that_count_are_pointed_out(sessions: Any) -> None:
    (note,) = [n for n in measure_baseline(sessions(job("i1 < 3"))).notes if "count" in n]
    assert "so few of them tell little: is `kept` as meant" in note


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("stop", "rest"), [("columns", "0.0f"), ("stride", "1e30f + i"), ("stride", "NAN")])
def test_a_tuned_form_may_leave_anything_where_nothing_counts(
    sessions: Any, whole: bool, stop: str, rest: str
) -> None:
    session = sessions(job("i1 < columns"))
    session.baseline.learn(measure_baseline(session))
    assert judged(session, job("i1 < columns", stop, rest=rest), whole=whole) == 0.0


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("columns - 1", "32 of 6400 elements were never written, the first is element 199"),
        (
            "row == 31 ? columns - 1 : stride",
            "1 of 6400 elements were never written, the first is element 7143",
        ),
    ],
)
def test_a_wrong_element_that_counts_is_found_and_named_by_its_place(
    sessions: Any, whole: bool, stop: str, words: str
) -> None:
    session = sessions(job("i1 < columns"))
    session.baseline.learn(measure_baseline(session))
    found = judged(session, job("i1 < columns", stop), whole=whole)
    assert isinstance(found, Rejected)
    assert words in found.reason


def test_a_wrong_value_is_named_by_its_place_in_the_output(sessions: Any) -> None:
    session = sessions(job("i1 < columns"))
    session.baseline.learn(measure_baseline(session))
    wrong = job("i1 < columns").model_dump(mode="json")
    text = wrong["kernel"]["source"].replace("2.0f * x", "(row == 3 && i == 5 ? 3.0f : 2.0f) * x")
    wrong["kernel"]["source"] = text
    found = judged(session, Job.model_validate(wrong), whole=True)
    assert isinstance(found, Rejected)
    assert f"(of those that count, of which this is element {3 * 224 + 5} of y)" in found.reason


def test_a_candidate_cannot_say_what_counts(sessions: Any) -> None:
    """What its template declares is not asked, and what it writes over the lengths is refused."""
    session = sessions(job("i1 < lengths", "lengths[row]"))
    session.baseline.learn(measure_baseline(session))
    assert judged(session, job("i0 < 0", "0"), whole=True) != 0.0
    thief = job("i1 < lengths", "0").model_dump(mode="json")
    body = "  ((__global int*)lengths)[row] = 0;\n  for"
    thief["kernel"]["source"] = thief["kernel"]["source"].replace("  for", body)
    found = judged(session, Job.model_validate(thief), whole=True)
    assert isinstance(found, Rejected)
    assert found.reason == "changed the read-only lengths"


MARKED = """if (i >= n - 64) return;
  y[i] = i < 64 && y[n - 64 + i] == 7.0f ? -1.0f : 2.0f * x[i];
  if (i < 64) y[n - 64 + i] = 7.0f;"""
"""Wrong wherever a launch finds in the last elements what an earlier one left there."""


@pytest.mark.parametrize("cache", list(CacheState))
def test_no_timed_launch_finds_what_an_earlier_one_left(
    child: ChildDevice, pool: CompilePool, opencl_info: DeviceInfo, cache: CacheState
) -> None:
    handle = child.load(built(pool, opencl_info, source(Backend.OPENCL, MARKED)))
    found = {}
    for in_part in (True, False):
        made = plan(N, key=str(in_part))
        x, y, n = made.arguments
        assert isinstance(y, BufferPlan)
        made = replace(made, arguments=(x, replace(y, in_part=in_part), n))
        child.prepare(made)
        # What is compared may be spoiled, by lot; the marks lie behind it.
        check = TimedCheck({"y": [(0, N - 64)]}, redraw=False)
        # Every set of outputs has been launched before the check.
        child.time(handle, made.key, size(N), TimingPlan(cache, samples=2 * MAX_SETS))
        timed = child.time(handle, made.key, size(N), TimingPlan(cache, samples=6, check=check))
        assert timed.report is not None
        found[in_part] = np.array_equal(
            floats(timed.report.run.outputs["y"]), expected(made)[: N - 64].astype(np.float32)
        )
        child.release(made.key)
    assert found == {True: True, False: False}
