"""Symbols in the device child: filled before launches, compared after them, drawn anew as inputs are."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.symbol_jobs import REFERENCE, SOURCE, TAPS, blur_job
from tests.unit.backends.test_cuda_arguments import Host, Stretch
from warpsmith.backends.base import Array, Bound, CompileRequest, LaunchRefused, Repeats, Watch
from warpsmith.backends.binaries.cubin import read_cubin, variable_named
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.backends.cuda.program import CudaProgram
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import (
    Compiled,
    Family,
    TimedCheck,
    TimingPlan,
    WorkloadPlan,
    plan_workload,
)
from warpsmith.sandbox.children.device_child import _Server
from warpsmith.sandbox.children.reference_child import _compute
from warpsmith.sandbox.memory.reference_arrays import HostArrays
from warpsmith.sandbox.transport.messages import plan_to_json, size_to_json, timing_to_json
from warpsmith.verify.inputs import draw_inputs

SIZE = LaunchSize((8, 1, 1), (128, 1, 1))
GUARD = 4096
Floats = NDArray[np.float32]
Kernel = Callable[[dict[str, Any]], None]
"""What a launch does: with the contents of variables by name, and the arguments x and y."""

APART = 1 << 16
"""Bytes between the addresses of two variables."""


class Driver:
    """Variables of a module, at addresses that are their names."""

    class Error(Exception):
        """As PyCUDA's."""

    def __init__(self, variables: dict[str, bytearray]) -> None:
        self.variables = variables
        self.writes: list[bytes] = []

    def get_global(self, name: str) -> tuple[int, int]:
        if name not in self.variables:
            raise self.Error("cuModuleGetGlobal failed: named symbol not found")
        return APART * (1 + list(self.variables).index(name)), len(self.variables[name])

    def memcpy_htod(self, to: int, host: Array) -> None:
        self.at(to)[:] = host.tobytes()
        self.writes.append(host.tobytes())

    def memcpy_dtoh(self, host: Array, at: int) -> None:
        host.view(np.uint8)[:] = np.frombuffer(self.at(at), np.uint8)

    def at(self, address: int) -> bytearray:
        return list(self.variables.values())[address // APART - 1]


class PythonDevice(Host):
    """Launches Python functions; everything before and after a launch is what a GPU gets."""

    def __init__(self, driver: Driver, kernel: Kernel, globals_: Sequence[str] = ()) -> None:
        super().__init__()
        self._driver, self._kernel, self._globals = driver, kernel, globals_

    def load(self, compiled: Any) -> CudaProgram:
        return CudaProgram(self._driver, self._driver, (), self._globals, compiled.binary)

    def launch(self, program: CudaProgram, arguments: Sequence[Bound], size: LaunchSize) -> None:
        x, y = (cast("tuple[Stretch, int]", a) for a in arguments[:2])
        views = [np.frombuffer(m.data, np.float32)[at // 4 : -at // 4] for m, at in (x, y)]
        seen = {n: np.frombuffer(v, np.float32) for n, v in self._driver.variables.items()}
        self._kernel({**seen, "x": views[0], "y": views[1]})

    def time(
        self, program: CudaProgram, sets: Any, size: LaunchSize, repeats: Repeats, watch: Watch
    ) -> tuple[list[float], int]:
        count = repeats.samples(10.0)
        watch.before(None, 1)
        self.launch(program, sets[-1], size)
        for sample in range(count):
            watch.before(sample, 1)
            self.launch(program, sets[sample % len(sets)], size)
            watch.after(sample)
        return [10.0] * count, 1


def blur(seen: dict[str, Any]) -> None:
    """The kernel of the job."""
    taps, x, y = seen["taps"], seen["x"], seen["y"]
    y[:] = sum(taps[t] * x[t : t + y.size] for t in range(taps.size))


def adds_to_its_symbol(seen: dict[str, Any]) -> None:
    """A right kernel that leaves a mark in its symbol."""
    blur(seen)
    seen["taps"][0] += 1.0


@cache
def compiled(source: str, entry: str) -> Compiled:
    """A cubin, as the compile child makes it."""
    made = compile_cuda(CompileRequest(Backend.CUDA, source, entry, (), (), "nvrtc", "sm_90", 0))
    assert isinstance(made, Compiled), made
    return made


class Child:
    """A device child without a process."""

    def __init__(
        self, kernel: Kernel = blur, job: Job | None = None, space: str = "__constant__", taps: int = 5
    ) -> None:
        source = SOURCE.replace("__constant__", space).replace("TAPS 5", f"TAPS {taps}")
        made = compiled(source, "blur")
        self.job = job or blur_job()
        self.driver = Driver({"taps": bytearray(4 * taps)})
        self.plan = plan_workload(self.job.kernel, self.job.workloads[0], {}, seed=7)
        device = PythonDevice(self.driver, kernel, made.globals)
        self._server = _Server(cast("Any", None), cast("Any", device), guarded=True)
        self._server._prepare({"plan": plan_to_json(self.plan), "guards": {}}, [])
        self._server._load({"globals": [], "entries": ["blur"]}, [bytearray(made.binary)])
        self._case = {
            "case": {"workload": self.plan.workload, "family": "declared", "variant": 0},
            "handle": 1,
        }

    def run(self, repeat: bool = True) -> tuple[dict[str, Any], list[Floats]]:
        request = {**self._case, "size": size_to_json(SIZE), "ranges": None, "again": None}
        request |= {"poison": True, "repeat": repeat}
        header, out = self._server._run(request, [])
        return header, [np.frombuffer(cast("bytes", o), np.float32) for o in out]

    def time(self, other: tuple[Family, int] | None, redraw: bool) -> tuple[dict[str, Any], list[Floats]]:
        check = TimedCheck({"y": [(0, 1000)]}, other, redraw, spoiled=True)
        plan = TimingPlan(CacheState.HOT, samples=6, check=check)
        request = {**self._case, "size": size_to_json(SIZE), "plan": timing_to_json(plan)}
        header, out = self._server._time(request, [])
        return header, [np.frombuffer(cast("bytes", o), np.float32) for o in out]


def expected(job: Job, plan: WorkloadPlan) -> Floats:
    """What the reference, which gets the symbol as an input, says."""
    outputs = _compute(HostArrays(), REFERENCE, "reference", plan, dict(job.workloads[0].dimensions))
    return np.asarray(outputs["y"])


def test_the_reference_and_the_launch_have_the_same_symbol() -> None:
    child = Child()
    header, outputs = child.run()
    for output in outputs:
        np.testing.assert_allclose(output, expected(child.job, child.plan), rtol=1e-4, atol=1e-4)
    assert (header["changed"], header["guards"], header["names"]) == ([], [], ["y"])
    assert child.driver.writes == 2 * [draw_inputs(child.plan)["taps"].tobytes()]


@pytest.mark.parametrize("redraw", [False, True])
def test_a_launch_among_the_timed_ones_has_the_symbol_that_belongs_to_its_inputs(redraw: bool) -> None:
    child, other = Child(), (Family.SCALED_UP, 5)
    header, outputs = child.time(other, redraw)
    assert header["other"] is redraw
    plan = child.plan
    if redraw:
        plan = WorkloadPlan(plan.workload, plan.arguments, plan.seed, *other, behind=plan.behind)
    np.testing.assert_allclose(outputs[0], expected(child.job, plan), rtol=1e-4, atol=1e-4)
    assert header["changed"] == []
    own = draw_inputs(child.plan)["taps"].tobytes()
    assert child.driver.writes.count(own) >= 7, "before the warm-up and before every sample"
    assert len(set(child.driver.writes)) == 1 + redraw
    _, again = child.run()
    np.testing.assert_allclose(again[0], expected(child.job, child.plan), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("space", "globals_"), [("__constant__", []), ("__device__", ["taps"])])
def test_a_symbol_that_a_launch_wrote_is_a_changed_input_and_never_reaches_another(
    space: str, globals_: list[str]
) -> None:
    child = Child(adds_to_its_symbol, space=space)
    header, outputs = child.run()
    assert header["changed"] == ["taps"]
    assert header["globals"] == globals_
    np.testing.assert_array_equal(outputs[0], outputs[1])
    timed, _ = child.time(None, redraw=False)
    assert timed["changed"] == ["taps"]


def test_what_the_job_filled_is_no_variable_that_the_kernel_wrote() -> None:
    child = Child(space="__device__")
    assert child.run()[0]["globals"] == []
    assert child.time((Family.ZEROS, 3), redraw=True)[0]["globals"] == []


@pytest.mark.parametrize(
    ("name", "taps", "words"),
    [
        ("taps", 6, "symbol taps: has 20 bytes in the job and 24 in the kernel"),
        ("lost", 5, "symbol lost: the driver"),
    ],
)
def test_a_symbol_that_the_binary_has_not_is_refused_with_its_name(name: str, taps: int, words: str) -> None:
    child = Child(job=blur_job([{**TAPS, "name": name}]), taps=taps)
    with pytest.raises(LaunchRefused, match=words):
        child.run()


def test_a_symbol_of_one_value_has_it_in_every_case() -> None:
    symbol = {"name": "taps", "dtype": "float32", "role": "symbol", "shape": [5], "value": "n / 4"}
    plan = Child(job=blur_job([symbol])).plan
    for family in (Family.DECLARED, Family.ZEROS, Family.EDGE_CASE):
        drawn = draw_inputs(WorkloadPlan("w", (), 3, family, 1, plan.symbols))["taps"]
        np.testing.assert_array_equal(drawn, np.full(5, 250.0, np.float32))


def test_a_variable_is_found_by_its_own_name_in_whatever_namespace() -> None:
    text = """
    namespace a { namespace b { __constant__ float taps[5]; } __device__ float two; }
    namespace c { __device__ float two; }
    __constant__ float s;
    extern "C" __global__ void f(float* y) { y[0] = s + a::b::taps[1] + (a::two = c::two); }
    """
    contents = read_cubin(compiled(text, "f").binary)
    names = [variable_named(contents, name) for name in ("s", "taps", "two", "aps")]
    assert names == ["s", "_ZN1a1b4tapsE", "", ""]
