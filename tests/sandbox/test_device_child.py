"""The device child on PoCL: kernels that crash, hang, write where they must not, or do nothing."""

import math
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from testbed.deadlines import HANGS_S, comes_true, stretched
from tests.sandbox.kernels import (
    SCALE,
    built,
    expected,
    floats,
    group_of,
    may_read_environ_of,
    pid_of,
    plan,
    size,
    source,
    updated,
    wait_until,
)
from warpsmith.backends.base import LONG_SAMPLE_IN_PLACE_US
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import CacheState, Tolerance
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import (
    LEAST_SAMPLES,
    BufferPlan,
    CaseKey,
    Compiled,
    Family,
    TimedCheck,
    TimingPlan,
    WorkloadPlan,
)
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.verify.compare import compare
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import RunReport

N = 1001
"""No multiple of a block or of 16 bytes, so that the first element behind the end is not aligned."""
Build = Callable[..., Compiled]


@pytest.fixture(scope="module")
def build(pool: CompilePool, opencl_info: DeviceInfo) -> Build:
    """Compiles the body of a kernel, each body once."""
    kept: dict[tuple[str, str], Compiled] = {}

    def compile_body(body: str, before: str = "") -> Compiled:
        if (body, before) not in kept:
            kept[body, before] = built(pool, opencl_info, source(Backend.OPENCL, body, before))
        return kept[body, before]

    return compile_body


@pytest.fixture(scope="module")
def children(opencl_info: DeviceInfo) -> Iterator[list[ChildDevice]]:
    """The child in use, replaced after a fault as a search does it."""
    opened: list[ChildDevice] = []
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def child(opencl_info: DeviceInfo, children: list[ChildDevice]) -> ChildDevice:
    """A living child with short deadlines."""
    if not children or not children[-1]._process.alive:
        children.append(ChildOpener(opencl_info, run_timeout_s=stretched(5)).open())
    return children[-1]


def _run(child: ChildDevice, compiled: Compiled, of: WorkloadPlan | None = None) -> RunReport:
    workload = of or plan(N)
    child.prepare(workload)
    return child.run(child.load(compiled), workload.key, size(workload.buffers[0].elements))


def _dies(child: ChildDevice, compiled: Compiled) -> ChildDied:
    """What a fault looks like from here; the child must be gone, with all it started and wrote."""
    leader, folder = pid_of(child), child._process.private
    with pytest.raises(ChildDied) as caught:
        _run(child, compiled)
    wait_until(lambda: not group_of(leader))
    assert not folder.exists()
    return caught.value


def test_a_right_kernel_writes_what_is_expected(child: ChildDevice, build: Build) -> None:
    report = _run(child, build(SCALE))
    np.testing.assert_array_equal(report.outputs["y"], expected(plan(N)).astype(np.float32))
    assert (report.guard_violations, report.changed_inputs) == ((), ())


def test_ranges_bring_back_what_the_whole_output_holds_there(child: ChildDevice, build: Build) -> None:
    workload = plan(N)
    child.prepare(workload)
    handle = child.load(build(SCALE))
    spans = [(0, 3), (500, 501), (N - 1, N)]
    whole = child.run(handle, workload.key, size(N)).outputs["y"]
    part = child.run(handle, workload.key, size(N), {"y": spans}).outputs["y"]
    np.testing.assert_array_equal(part, np.concatenate([whole[a:b] for a, b in spans]))


def test_an_endless_loop_ends_at_its_deadline_and_the_next_child_works(
    opencl_info: DeviceInfo, build: Build
) -> None:
    limit_s = stretched(1)
    opener = ChildOpener(opencl_info, run_timeout_s=limit_s)
    endless = build("volatile int on = 1; while (on) y[i] += x[i];")
    child = opener.open()
    started = time.monotonic()
    assert _dies(child, endless).cause == "timeout"
    assert time.monotonic() - started < 4 * limit_s
    child = opener.open()
    try:
        found = floats(_run(child, build(SCALE)).outputs["y"])
        np.testing.assert_allclose(found, expected(plan(N)), rtol=1e-6)
    finally:
        child.close()


def test_a_timing_that_hangs_ends_at_its_deadline(opencl_info: DeviceInfo, build: Build) -> None:
    limit_s = stretched(1)
    child = ChildOpener(opencl_info, run_timeout_s=limit_s).open()
    leader = pid_of(child)
    child.prepare(plan(N))
    handle = child.load(build("volatile int on = 1; while (on) y[i] += x[i];"))
    with pytest.raises(ChildDied) as caught:
        child.time(handle, CaseKey("w"), size(N), TimingPlan(CacheState.HOT, samples=3))
    assert caught.value.cause == "timeout"
    assert f"(WARPSMITH_RUN_TIMEOUT_S is {limit_s:g})" in caught.value.detail
    wait_until(lambda: not group_of(leader))


@pytest.mark.parametrize(
    "body",
    [
        "((__global float*)16)[i] = 1.0f;",
        "y[i] = ((volatile __global float*)0)[i];",
        "y[(long)i * 1000000000L + 100000000000L] = 1.0f;",
        "__builtin_trap();",
    ],
    ids=["null-write", "null-read", "far-write", "trap"],
)
def test_a_crash_ends_the_child_and_not_the_worker(child: ChildDevice, build: Build, body: str) -> None:
    died = _dies(child, build(body))
    assert died.cause == "signal"
    assert "SIG" in died.detail


def test_a_killed_child_is_told_from_a_hung_one(child: ChildDevice, build: Build) -> None:
    child.prepare(plan(N))
    os.kill(pid_of(child), signal.SIGKILL)
    with pytest.raises(ChildDied, match="SIGKILL"):
        child.load(build(SCALE))


@pytest.mark.parametrize("at", ["n", "n + 3", "n + 900", "-1", "-1000"])
@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.INT8], ids=str)
def test_a_write_beside_a_buffer_is_found(child: ChildDevice, build: Build, at: str, dtype: Dtype) -> None:
    if dtype is Dtype.INT8:
        body = f"((__global char*)y)[i] = 2; if (i == 0) ((__global char*)y)[{at}] ^= 0x5a;"
    else:
        body = f"{SCALE} if (i == 0) ((__global int*)y)[{at}] ^= 0x5a;"
    report = _run(child, build(body), plan(N, dtype))
    assert report.guard_violations == ("y",)
    assert report.changed_inputs == ()


@pytest.mark.parametrize(("dtype", "word"), [(Dtype.FLOAT32, "float"), (Dtype.FLOAT64, "double")])
def test_an_addition_beside_a_buffer_is_found_every_time(
    child: ChildDevice, build: Build, dtype: Dtype, word: str
) -> None:
    """Not-a-number and large numbers stay as they are; whether a shape is right must not hang on that."""
    compiled = build(f"if (i < 0) y[i] = x[i]; if (i == 0) ((__global {word}*)y)[n] += 1e-3f;")
    found = [_run(child, compiled, plan(N, dtype, key=f"w{turn}")) for turn in range(20)]
    assert [report.guard_violations for report in found] == [("y",)] * 20


def test_a_write_beside_an_input_is_found(child: ChildDevice, build: Build) -> None:
    body = f"{SCALE} if (i == 0) ((__global float*)x)[n] = 1.0f;"
    assert _run(child, build(body)).guard_violations == ("x",)


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 257])
@pytest.mark.parametrize("dtype", [Dtype.INT8, Dtype.FLOAT64], ids=str)
def test_poison_and_guards_leave_no_gap_at_any_size(
    child: ChildDevice, build: Build, n: int, dtype: Dtype
) -> None:
    bytewise = "for (int k = 0; k < n * sizeof(T); k++) ((__global char*)y)[k] = 1;"
    define = {Dtype.INT8: "char", Dtype.FLOAT64: "long"}[dtype]
    report = _run(child, build(f"if (i == 0) {bytewise}", f"#define T {define}"), plan(n, dtype))
    assert report.guard_violations == ()
    assert report.outputs["y"].tobytes() == b"\x01" * (n * dtype.size_bytes)
    past = _run(
        child,
        build("if (i == 0) ((__global char*)y)[n * sizeof(T)] ^= 1;", f"#define T {define}"),
        plan(n, dtype),
    )
    assert past.guard_violations == ("y",)
    # Nothing wrote the output: all of it must be poison, and not twice the same.
    again = _run(child, build("if (i < 0) y[i] = 1.0f;", f"#define T {define}"), plan(n, dtype))
    if n * dtype.size_bytes >= 8:
        assert past.outputs["y"].tobytes() != again.outputs["y"].tobytes()


@pytest.mark.parametrize("at", ["0", "n / 2", "n - 1"])
def test_a_write_into_a_read_only_input_is_found(child: ChildDevice, build: Build, at: str) -> None:
    body = f"{SCALE} if (i == 0) ((__global int*)x)[{at}] ^= 1;"
    report = _run(child, build(body))
    assert report.changed_inputs == ("x",)
    assert report.guard_violations == ()


def test_a_search_run_looks_at_both_ends_of_a_large_input(child: ChildDevice, build: Build) -> None:
    workload = plan(1 << 18)
    child.prepare(workload)
    for at in ("0", "n - 1"):
        handle = child.load(build(f"{SCALE} if (i == 0) ((__global int*)x)[{at}] ^= 1;"))
        report = child.run(handle, workload.key, size(1 << 18), {"y": [(0, 8)]})
        assert report.changed_inputs == ("x",)
        child.prepare(workload)


def test_a_kernel_that_writes_nothing_shows_poison_and_no_earlier_answer(
    child: ChildDevice, build: Build
) -> None:
    workload = plan(N)
    child.prepare(workload)
    right, idle = child.load(build(SCALE)), child.load(build("if (i < 0) y[i] = 1.0f;"))
    seen = set()
    for _ in range(3):
        good = child.run(right, workload.key, size(N)).outputs["y"]
        np.testing.assert_array_equal(good, expected(workload).astype(np.float32))
        left = child.run(idle, workload.key, size(N)).outputs["y"]
        # One element in 2^32 may look right by chance; all may not.
        assert np.count_nonzero(left == good) <= 1
        seen.add(left.tobytes())
    assert len(seen) == 3


def test_a_kernel_that_skips_the_last_block_is_seen(child: ChildDevice, build: Build) -> None:
    report = _run(child, build("if (i < n / 64 * 64) y[i] = 2.0f * x[i];"))
    wrong = compare(report.outputs["y"], expected(plan(N)), _loose())
    assert wrong.first_wrong == N // 64 * 64


def test_nan_comes_back_as_nan(child: ChildDevice, build: Build) -> None:
    report = _run(child, build("y[i] = i % 2 ? nan((uint)0) : (i % 4 ? INFINITY : -INFINITY);"))
    values = report.outputs["y"]
    assert np.isnan(values[1::2]).all()
    assert (values[0::4] == -math.inf).all()
    assert compare(report.outputs["y"], expected(plan(N)), _loose()).wrong == N


def test_inputs_changed_in_place_are_put_back_before_every_launch(child: ChildDevice, build: Build) -> None:
    workload = _in_place(N)
    child.prepare(workload)
    handle = child.load(build("y[i] = y[i] * 2.0f + x[i];"))
    for _ in range(3):
        found = floats(child.run(handle, workload.key, size(N)).outputs["y"])
        np.testing.assert_allclose(found, updated(workload), rtol=1e-5, atol=1e-5)
    timed = child.time(handle, workload.key, size(N), TimingPlan(CacheState.COLD, samples=3))
    assert len(timed.samples.samples_us) == 3
    found = floats(child.run(handle, workload.key, size(N)).outputs["y"])
    np.testing.assert_allclose(found, updated(workload), rtol=1e-5, atol=1e-5)


SLOW_IN_PLACE = """
float sum = x[i];
for (int k = 0; k < 400000; k++) sum = sum * 0.999f + 0.001f;
y[i] = y[i] * 2.0f + sum;
"""


@pytest.mark.parametrize("cache", list(CacheState))
def test_a_long_launch_in_place_is_not_repeated_for_every_set(
    child: ChildDevice, build: Build, cache: CacheState
) -> None:
    workload = _in_place(N)
    child.prepare(workload)
    slow, quick = child.load(build(SLOW_IN_PLACE)), child.load(build("y[i] = y[i] * 2.0f + x[i];"))
    timed = child.time(slow, workload.key, size(N), TimingPlan(cache, samples=4, enough_s=HANGS_S))
    assert min(timed.samples.samples_us) > LONG_SAMPLE_IN_PLACE_US, "else this test says nothing"
    assert timed.samples.launches == 1
    assert (timed.samples.complete, len(timed.samples.samples_us)) == (True, 4)
    fewer = child.time(slow, workload.key, size(N), TimingPlan(cache, samples=40, enough_s=0.0))
    assert (fewer.samples.complete, len(fewer.samples.samples_us)) == (True, LEAST_SAMPLES)
    # One launch is timed first, and a busy machine may interrupt it.
    often = TimingPlan(cache, samples=4)
    assert comes_true(lambda: child.time(quick, workload.key, size(N), often).samples.launches > 2, HANGS_S)
    for handle in (slow, quick):
        ranges = {"y": [(0, N)]}
        plan_ = TimingPlan(cache, samples=4, check=TimedCheck(ranges, (Family.DECLARED, 1000), None))
        found = child.time(handle, workload.key, size(N), plan_)
        assert found.samples.complete
        seen = found.report
        assert seen is not None
        drawn = draw_inputs(replace(workload, variant=1000) if seen.other else workload)
        tail = floats(drawn["x"]) if handle == quick else np.ones(N, np.float32)
        want = floats(drawn["y"]) * 2 + tail
        np.testing.assert_allclose(floats(seen.run.outputs["y"]), want, rtol=1e-3, atol=1e-3)


def test_scalars_and_inputs_arrive_in_their_types(
    child: ChildDevice, pool: CompilePool, opencl_info: DeviceInfo
) -> None:
    text = source(Backend.OPENCL, "((__global int*)y)[i] = ((__global const int*)x)[i] * n;")
    x = BufferPlan(
        "x", Dtype.INT32, Role.INPUT, (N,), Draw(distribution=Distribution.INTEGERS, low=-5, high=5)
    )
    y = BufferPlan("y", Dtype.INT32, Role.OUTPUT, (N,), None)
    workload = WorkloadPlan("w", (x, y, plan(N).arguments[2]), seed=9)
    report = _run(child, built(pool, opencl_info, text), workload)
    drawn = draw_inputs(workload)["x"].astype(np.int32)
    np.testing.assert_array_equal(report.outputs["y"], drawn * np.int32(N))


@pytest.mark.parametrize("cache", list(CacheState))
def test_timing_gives_as_many_positive_samples_as_planned(
    child: ChildDevice, build: Build, cache: CacheState
) -> None:
    child.prepare(plan(N))
    handle = child.load(build(SCALE))
    timed = child.time(handle, CaseKey("w"), size(N), TimingPlan(cache, samples=5))
    assert timed.samples.complete
    assert len(timed.samples.samples_us) == 5
    assert all(0 < s < 1e6 for s in timed.samples.samples_us)
    given_up = child.time(handle, CaseKey("w"), size(N), TimingPlan(cache, samples=50, give_up_above_us=1e-6))
    assert (given_up.samples.complete, len(given_up.samples.samples_us)) == (False, 3)


def test_a_launch_the_driver_refuses_leaves_the_child_well(child: ChildDevice, build: Build) -> None:
    child.prepare(plan(N))
    handle = child.load(build(SCALE))
    too_wide = LaunchSize((1, 1, 1), (1 << 20, 1, 1))
    with pytest.raises(KernelRefused):
        child.run(handle, CaseKey("w"), too_wide)
    with pytest.raises(KernelRefused, match="an argument with the role local"):
        child.run(handle, CaseKey("w"), LaunchSize((1, 1, 1), (1, 1, 1), shared_bytes=16))
    assert child.run(handle, CaseKey("w"), size(N)).guard_violations == ()


def test_a_binary_that_is_none_is_refused(child: ChildDevice, build: Build) -> None:
    good = build(SCALE)
    with pytest.raises((KernelRefused, ChildDied)):
        child.load(Compiled(b"not a binary" * 50, "f", good.facts))


def test_an_entry_that_is_not_in_the_binary_is_refused(child: ChildDevice, build: Build) -> None:
    good = build(SCALE)
    with pytest.raises(KernelRefused):
        child.load(Compiled(good.binary, "g", good.facts))
    assert _run(child, good).guard_violations == ()


def test_released_workloads_give_their_memory_back(child: ChildDevice, build: Build) -> None:
    n = 1 << 24
    handle = child.load(build("if (i == 0) y[i] = x[i];"))

    def address_space() -> int:
        return int(Path(f"/proc/{pid_of(child)}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    before = 0
    for turn in range(6):
        x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (1,), None)
        y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (n,), None)
        workload = WorkloadPlan(f"w{turn}", (x, y, plan(1).arguments[2]), seed=turn)
        child.prepare(workload)
        child.run(handle, workload.key, size(1), {"y": [(0, 1)]})
        child.release(workload.key)
        before = before or address_space()
    assert address_space() - before < 2 * 4 * n


def test_the_child_holds_no_secret(opencl_info: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = secrets.token_hex(16)
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", f"postgresql://u:{secret}@h/d")
    descriptor = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    child = ChildOpener(opencl_info).open()
    try:
        environment = may_read_environ_of(pid_of(child))
        assert environment is None or (secret.encode() not in environment and b"PATH=" in environment)
        command = Path(f"/proc/{pid_of(child)}/cmdline").read_bytes()
        assert secret.encode() not in command
        if environment is not None:
            targets = {str(f.readlink()) for f in Path(f"/proc/{pid_of(child)}/fd").iterdir()}
            assert "/etc/passwd" not in targets
            assert not any(t.startswith("socket:") for t in targets)
    finally:
        child.close()
        os.close(descriptor)


def _in_place(n: int) -> WorkloadPlan:
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (n,), None)
    y = BufferPlan("y", Dtype.FLOAT32, Role.INOUT, (n,), None)
    return WorkloadPlan("w", (x, y, plan(n).arguments[2]), seed=7)


def _loose() -> Tolerance:
    return Tolerance(rtol=1e-4, atol=1e-5)
