"""OpenCL kernels that read and write images: bound, poisoned, watched, compared."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.deadlines import HANGS_S
from testbed.fakes import ListSink
from tests.unit.tuning.test_tuning_loops import Listed
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled, Family, TimedCheck, TimingPlan, plan_workload
from warpsmith.domain.templates.space import allows
from warpsmith.domain.templates.template import Template
from warpsmith.errors import KernelRefused
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, run_slice
from warpsmith.verify.inputs import draw_inputs

BLUR = """
__constant sampler_t taps = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

__kernel void blur(__read_only image2d_t src, __write_only image2d_t dst, const int w, const int h)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= w || y >= h) return;
    float4 sum = (float4)(0.0f);
    for (int d = -1; d <= 1; d++)
        sum += read_imagef(src, taps, (int2)(x + d, y));
    write_imagef(dst, (int2)(x, y), sum / 3.0f);
}
"""
NUMPY = """
def reference(inputs, dims):
    x = np.pad(inputs["src"], ((0, 0), (1, 1), (0, 0)), mode="edge")
    return {"dst": (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3.0}
"""
W, H = 75, 34


def image(
    name: str, role: str, channels: str = "rgba", dtype: str = "float32", **fields: Any
) -> dict[str, Any]:
    """An argument that is an image of the workload's size."""
    form = {"channels": channels, **fields}
    return {"name": name, "dtype": dtype, "role": role, "shape": ["h", "w", len(channels)], "image": form}


def image_job(
    channels: str = "rgba", source: str = BLUR, size: tuple[int, int] = (W, H), **fields: Any
) -> Job:
    """The job of `BLUR`, with a NumPy reference."""
    kernel = {
        "backend": "opencl",
        "source": source,
        "entry": "blur",
        "arguments": [
            image("src", "input", channels),
            image("dst", "output", channels),
            {"name": "w", "dtype": "int32", "role": "scalar", "value": "w"},
            {"name": "h", "dtype": "int32", "role": "scalar", "value": "h"},
        ],
        "launch": {"grid": ["ceil_div(w, 16)", "ceil_div(h, 4)"], "block": [16, 4]},
    }
    data = {
        "name": "blur",
        "kernel": kernel,
        "workloads": [{"dimensions": {"w": size[0], "h": size[1]}}],
        "reference": {"kind": "numpy", "source": NUMPY},
        **fields,
    }
    return Job.model_validate(data)


def blurred(x: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """What `BLUR` is to write."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (0, 0)), mode="edge")
    result: np.ndarray[Any, Any] = (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) / 3.0
    return result


def close(got: "np.ndarray[Any, Any]", want: "np.ndarray[Any, Any]") -> None:
    """Both are the same, apart from rounding."""
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    """An opened device."""
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


@pytest.fixture
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    """What a worker has."""
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


def loaded(child: ChildDevice, pool: CompilePool, job: Job) -> tuple[int, Any, Any]:
    """The handle of a job's kernel, the plan of its workload and its launch."""
    kernel = Template(kernel=job.kernel).configured({})
    compiled = pool.submit(kernel, child.info).result(HANGS_S)
    assert isinstance(compiled, Compiled), compiled
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=3)
    child.prepare(plan)
    return child.load(compiled), plan, launch_size(kernel, job.workloads[0], child.info)


def refused(ports: SessionPorts, job: Job) -> str:
    """Why a job's kernel is no baseline."""
    session = DeviceSession(job, ports)
    try:
        return measure_baseline(session).refused
    finally:
        session.close()


@pytest.mark.parametrize("channels", ["rgba", "r"])
def test_an_image_is_read_through_a_sampler_and_another_one_written(
    child: ChildDevice, pool: CompilePool, channels: str
) -> None:
    handle, plan, size = loaded(child, pool, image_job(channels))
    x = draw_inputs(plan)["src"].reshape(H, W, len(channels))
    report = child.run(handle, plan.key, size, repeat=True)
    assert (report.guard_violations, report.changed_inputs) == ((), ())
    for got in (report.outputs, report.repeated):
        assert got is not None
        close(got["dst"], blurred(x))


def test_ranges_of_an_image_are_its_elements_row_by_row(child: ChildDevice, pool: CompilePool) -> None:
    handle, plan, size = loaded(child, pool, image_job(size=(700, 800)))
    whole = child.run(handle, plan.key, size).outputs["dst"]
    assert whole.nbytes > 4 << 20
    ranges = [(0, 1), (2799, 2802), (700 * 4 * 5 - 3, 700 * 4 * 9 + 1), (whole.size - 5, whole.size)]
    parts = child.run(handle, plan.key, size, {"dst": ranges}).outputs["dst"]
    np.testing.assert_array_equal(parts, np.concatenate([whole[a:b] for a, b in ranges]))


def test_slices_of_a_volume_are_read_and_written(child: ChildDevice, pool: CompilePool) -> None:
    source = """
    #pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
    __kernel void twice(read_only image3d_t src, write_only image3d_t dst) {
      const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
      int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
      write_imagei(dst, at, 2 * read_imagei(src, s, at));
    }"""
    kernel = {
        "backend": "opencl",
        "source": source,
        "entry": "twice",
        "arguments": [
            image(name, role, dtype="int32") | {"shape": ["d", "h", "w", 4]}
            for name, role in (("src", "input"), ("dst", "output"))
        ],
        "launch": {"grid": ["w", "h", "d"], "block": [1]},
    }
    workload = {"dimensions": {"w": 9, "h": 5, "d": 7}}
    job = Job.model_validate({"name": "twice", "kernel": kernel, "workloads": [workload]})
    handle, plan, size = loaded(child, pool, job)
    x = draw_inputs(plan)["src"]
    np.testing.assert_array_equal(child.run(handle, plan.key, size).outputs["dst"], 2 * x)
    row, layer = 9 * 4, 9 * 5 * 4
    for a, b in ((3, 7), (layer - 2, layer + 2), (2 * layer + row - 1, 2 * layer + 2 * row + 5)):
        got = child.run(handle, plan.key, size, {"dst": [(a, b)]}).outputs["dst"]
        np.testing.assert_array_equal(got, 2 * x[a:b])


def test_normalized_integers_are_fractions_in_the_kernel(child: ChildDevice, pool: CompilePool) -> None:
    source = BLUR.replace("sum / 3.0f", "1.0f - read_imagef(src, taps, (int2)(x, y))")
    job = image_job(source=source)
    arguments = [
        {**image(name, role, dtype="uint8", normalized=True), "draw": draw}
        for name, role, draw in (
            ("src", "input", {"distribution": "integers", "low": 0, "high": 256}),
            ("dst", "output", None),
        )
    ]
    fields = job.model_dump(mode="json")
    fields["kernel"]["arguments"][:2] = arguments
    handle, plan, size = loaded(child, pool, Job.model_validate(fields))
    x = draw_inputs(plan)["src"]
    got = child.run(handle, plan.key, size).outputs["dst"]
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, 255 - x)


@pytest.mark.parametrize("cache", list(CacheState))
def test_a_timed_launch_is_looked_at_on_other_inputs(
    child: ChildDevice, pool: CompilePool, cache: CacheState
) -> None:
    handle, plan, size = loaded(child, pool, image_job())
    check = TimedCheck({"dst": [(0, W * H * 4)]}, (Family.DECLARED, 9), redraw=True)
    timed = child.time(handle, plan.key, size, TimingPlan(cache, samples=3, check=check))
    assert len(timed.samples.samples_us) == 3
    seen = timed.report
    assert seen is not None and seen.other
    assert seen.run.changed_inputs == ()
    x = draw_inputs(replace(plan, variant=9))["src"].reshape(H, W, 4)
    close(seen.run.outputs["dst"], blurred(x))


def test_an_input_that_a_kernel_writes_is_seen(child: ChildDevice, pool: CompilePool) -> None:
    source = BLUR.replace("__read_only", "__write_only").replace("sum += read_imagef(src, taps,", "put(")
    source = "void put(int2 at) {}\n" + source.replace(
        "sum / 3.0f);", "sum); write_imagef(src, (int2)(0, 0), sum);"
    )
    handle, plan, size = loaded(child, pool, image_job(source=source))
    assert child.run(handle, plan.key, size).changed_inputs == ("src",)


def test_pocl_drops_what_a_kernel_writes_beyond_an_image(child: ChildDevice, pool: CompilePool) -> None:
    beyond = "".join(
        f"write_imagef(dst, (int2)({at}), (float4)(7.0f));" for at in ("w + x, y", "x, h + y", "-1 - x, y")
    )
    handle, plan, size = loaded(
        child, pool, image_job(source=BLUR.replace("sum / 3.0f);", f"sum / 3.0f); {beyond}"))
    )
    x = draw_inputs(plan)["src"].reshape(H, W, 4)
    report = child.run(handle, plan.key, size)
    close(report.outputs["dst"], blurred(x))
    assert report.changed_inputs == ()


READS = """
__kernel void reads(image2d_t src, __global float *dst, const int w, const int h)
{
    const sampler_t taps = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x < w && y < h) dst[y * w + x] = read_imagef(src, taps, (int2)(x, y)).y * 0.5f;
}
"""


def test_reads_of_an_image_may_be_repeated_and_writes_may_not(ports: SessionPorts) -> None:
    job = image_job()
    template = make_template(job).template
    assert {a.rule for a in template.applied} <= {"block_size", "unroll", "launch_bounds"}
    _right_everywhere(ports, job, template)
    fields = job.model_dump(mode="json") | {"reference": {"kind": "kernel"}}
    fields["kernel"] |= {"source": READS, "entry": "reads"}
    fields["kernel"]["arguments"][1] |= {"shape": ["h", "w"], "image": None}
    job = Job.model_validate(fields)
    template = make_template(job).template
    assert "elements_per_thread" in {a.rule for a in template.applied}
    _right_everywhere(ports, job, template)


def test_threads_beyond_the_launch_of_the_user_do_not_write_pixels() -> None:
    """An image may be wider than what is launched over."""
    job = image_job(source=BLUR.replace("if (x >= w || y >= h) return;", ""))
    constraints = {c.expression.text for c in make_template(job).template.space.constraints}
    assert {
        "WS_BLOCK_X == 16 or (w) % WS_BLOCK_X == 0",
        "WS_BLOCK_Y == 4 or (h) % WS_BLOCK_Y == 0",
    } <= constraints


def _right_everywhere(ports: SessionPorts, job: Job, template: Template) -> None:
    session = DeviceSession(job, ports)
    try:
        baseline = measure_baseline(session)
        assert not baseline.refused
        sink = ListSink()
        scope = {**ports.opener.info.scope(), **job.workloads[0].scope()}
        defaults = template.space.defaults
        some = [defaults]
        for p in template.space.parameters:
            others = [{**defaults, p.name: v} for v in p.values if v != defaults[p.name]]
            some += [c for c in others if allows(template.space.constraints, {**scope, **c}) is None][:1]
        limits = SliceLimits(seconds=120, trials=len(some), compile_ahead=1)
        run_slice(session, template, baseline, Listed(some), sink, limits)
    finally:
        session.close()
    assert len(sink.trials) == len(some) > 1
    assert [o for _, o in sink.trials if o.kind == "rejected"] == []


def test_a_wrong_image_is_refused(ports: SessionPorts) -> None:
    assert "dst is wrong" in refused(ports, image_job(source=BLUR.replace("sum / 3.0f", "sum / 3.01f")))


def test_pixels_that_are_never_written_are_counted(ports: SessionPorts) -> None:
    said = refused(ports, image_job(source=BLUR.replace("y >= h)", "y >= h - 1)")))
    assert f"{W * 4} of {W * H * 4} elements were never written" in said


def test_an_image_beyond_the_device_is_refused_with_its_limits(ports: SessionPorts) -> None:
    said = refused(ports, image_job("r", size=(1 << 20, 1)))
    assert "image src has 1048576 x 1 pixels (width x height); the device takes up to" in said


def test_a_format_that_the_device_lacks_is_refused(child: ChildDevice) -> None:
    fields = image_job().model_dump(mode="json")
    fields["kernel"]["arguments"][0] = image("src", "input", "bgra", "float32")
    job = Job.model_validate(fields)
    with pytest.raises(KernelRefused, match="image src: the device has no bgra images of float32"):
        child.prepare(plan_workload(job.kernel, job.workloads[0], {}, seed=3))
