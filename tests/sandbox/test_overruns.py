"""Writes outside the buffers at shapes that a job does not list, where the user's kernel may do the same."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import ml_dtypes
import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.memory import GUARD_BYTES, GuardZones
from warpsmith.domain.jobs.plan import BufferPlan, Family
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.sandbox.memory.canaries import canary_pair
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.baseline_cases import passing
from warpsmith.tuning.checks.faulty_shapes import FaultyShapes
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts
from warpsmith.verify.dtypes import numpy_dtype, widened
from warpsmith.verify.edge_cases import EDGE_CASES, KINDS, EdgeCase, changed_scalar, kind_of

BLOCK, LISTED = 64, 512
TINY = Case(Workload(dimensions={"n": 500}), Family.EDGE_CASE, KINDS.index(EdgeCase.TINY))
"""Twelve threads have no element, and what they add is 2^-44 at most."""
ADDS = "y[i] += c[0];"
ADDS_GUARDED = "if (i < n) y[i] += c[0];"
STORES = "y[i] = i < n ? y[i] + c[0] : 1.0f;"
"""Writes outside as `ADDS` does, but is always seen to."""


def adding(body: str) -> Job:
    """A job y += c[0] in place, with a thread for each element of whole blocks."""
    reference = "def reference(inputs, dims):\n    return {'y': inputs['y'] + inputs['c'][0]}\n"
    kernel = {
        "backend": "opencl",
        "source": f"__kernel void f(__global float *y, __global const float *c, const int n) {{\n"
        f"  const int i = get_global_id(0);\n  {body}\n}}\n",
        "entry": "f",
        "arguments": [
            {"name": "y", "dtype": "float32", "role": "inout", "shape": ["n"]},
            {"name": "c", "dtype": "float32", "role": "input", "shape": [4]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": [f"ceil_div(n, {BLOCK})"], "block": [str(BLOCK)]},
    }
    changes = {
        "kernel": kernel,
        "parameters": [],
        "workloads": [{"dimensions": {"n": LISTED}}],
        "reference": {"kind": "numpy", "source": reference},
        "tolerances": {},
        "budget": {"seconds": 600},
    }
    return Job.model_validate(scale_job().model_dump() | changes)


@contextmanager
def tuned(job: Job, info: DeviceInfo, pool: CompilePool) -> Iterator[DeviceSession]:
    """A session that knows the user's kernel."""
    with closing(DeviceSession(job, SessionPorts(ChildOpener(info), pool, ReferenceRunner()))) as session:
        baseline = measure_baseline(session)
        assert baseline.refused == ""
        session.baseline.learn(baseline)
        yield session


def checked(session: DeviceSession, body: str, case: Case) -> CheckResult:
    """What a candidate's launch on a case is worth."""
    kernel = Template(kernel=adding(body).kernel, space=session.job.space).configured({})
    compiled = session.compile(kernel)
    assert not isinstance(compiled, Rejected)
    handle = session.device(case).load(compiled)
    loaded = LoadedKernel(handle, case.workload, launch_size(kernel, case.workload, session.info))
    return session.checker.check(loaded, whole=True, on=case)


def test_where_the_user_s_kernel_writes_outside_nobody_is_refused_for_it(
    opencl_info: DeviceInfo, pool: CompilePool
) -> None:
    with tuned(adding(ADDS), opencl_info, pool) as session:
        edge_cases = [c for c in session.baseline.cases if c.family is Family.EDGE_CASE]
        shapes = {c.dimensions["n"] for c in edge_cases if kind_of(c.variant) is EdgeCase.TINY}
        assert shapes
        assert all(n % BLOCK == 0 for n in shapes), "what is added is seen, however small"
        assert not isinstance(checked(session, STORES, TINY), Rejected)
        found = checked(session, "if (i < n) y[i] += c[0]; else return; y[n] = 1.0f;", Case(TINY.workload))
        assert not isinstance(found, Rejected)
        for listed in (Case(session.job.workloads[0]), session.inputs.other(session.job.workloads[0])):
            found = checked(session, "y[i] += c[0]; y[n] = 1.0f;", listed)
            assert isinstance(found, Rejected)
            assert found.stage is Stage.GUARD


def test_where_the_user_s_kernel_keeps_to_its_buffers_a_candidate_must(
    opencl_info: DeviceInfo, pool: CompilePool
) -> None:
    with tuned(adding(ADDS_GUARDED), opencl_info, pool) as session:
        for case in (TINY, Case(TINY.workload)):
            found = checked(session, STORES, case)
            assert isinstance(found, Rejected)
            assert (found.stage, found.reason) == (Stage.GUARD, "wrote outside y")


@pytest.mark.parametrize("dtype", [d for d in Dtype if d.is_float and d is not Dtype.FLOAT8_E8M0FNU])
def test_the_least_number_that_is_added_changes_small_guard_words(dtype: Dtype) -> None:
    buffer = BufferPlan("y", dtype, Role.INOUT, (8,), None)
    least = float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_subnormal)  # type: ignore[no-untyped-call]
    for zone in canary_pair(buffer, GuardZones(small=True)):
        words = widened(np.frombuffer(zone, numpy_dtype(dtype)))
        assert (words != 0).all()
        assert (words > 0).any()
        assert (words < 0).any()
        after = (words + least).astype(numpy_dtype(dtype))
        assert (widened(after) != words).all()


ROWS, WIDTH, ROW = 8, 256, 6
"""The kernel fills one row whose index does not follow the extents."""


def one_row() -> Job:
    """A job that is right wherever the seventh row is there, and is its own reference."""
    source = (
        "__kernel void f(__global float *y, __global const float *x, const int width, const int row) {\n"
        "  const int i = get_global_id(0);\n  if (i < width) y[row * width + i] = x[i];\n}\n"
    )
    fields = adding(ADDS).model_dump()
    kernel = fields["kernel"] | {
        "source": source,
        "arguments": [
            {"name": "y", "dtype": "float32", "role": "inout", "shape": ["rows", "width"]},
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["width"]},
            {"name": "width", "dtype": "int32", "role": "scalar", "value": "width"},
            {"name": "row", "dtype": "int32", "role": "scalar", "value": f"{ROW} + 0 * rows"},
        ],
        "launch": {"grid": [f"ceil_div(width, {BLOCK})"], "block": [str(BLOCK)]},
    }
    workloads = [{"dimensions": {"rows": ROWS, "width": WIDTH}}]
    return Job.model_validate(
        fields | {"kernel": kernel, "workloads": workloads, "reference": {"kind": "kernel"}}
    )


def test_a_shape_at_which_the_user_s_kernel_writes_rows_outside_is_fair_to_nobody(
    opencl_info: DeviceInfo, pool: CompilePool
) -> None:
    with tuned(one_row(), opencl_info, pool) as session:
        rows = [c.dimensions["rows"] for c in session.baseline.cases]
        assert min(rows) > ROW
        assert max(rows) > ROWS


def strided() -> Job:
    """A job whose rows lie apart by the square of a plain number, which is one; its own reference."""
    source = (
        "__kernel void f(__global float *y, __global const float *x, const int width, const int apart) {\n"
    )
    source += "  const int i = get_global_id(0), row = get_global_id(1);\n"
    source += "  if (i < width) y[row * width * apart * apart + i] = x[row * width + i];\n}\n"
    fields = adding(ADDS).model_dump()
    kernel = fields["kernel"] | {
        "source": source,
        "arguments": [
            {"name": "y", "dtype": "float32", "role": "inout", "shape": ["rows", "width"]},
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "width"]},
            {"name": "width", "dtype": "int32", "role": "scalar", "value": "width"},
            {"name": "apart", "dtype": "int32", "role": "scalar", "value": 1},
        ],
        "launch": {"grid": [f"ceil_div(width, {BLOCK})", "rows"], "block": [str(BLOCK)]},
    }
    workloads = [{"dimensions": {"rows": 2, "width": 4000}}]
    return Job.model_validate(
        fields | {"kernel": kernel, "workloads": workloads, "reference": {"kind": "kernel"}}
    )


def test_a_number_with_which_the_user_s_kernel_writes_far_outside_is_fair_to_nobody(
    opencl_info: DeviceInfo, pool: CompilePool
) -> None:
    """At the listed shape, too, where usual guard zones end before the second row; one number in all
    processes, whatever they draw."""
    job = strided()
    with closing(
        DeviceSession(job, SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner()))
    ) as session:
        kernel = session.inputs.user_template.configured({})
        compiled = session.compile(kernel)
        assert not isinstance(compiled, Rejected)
        first = KINDS.index(EdgeCase.SCALARS)
        tripled = next(v for v in range(first, 10**6, EDGE_CASES) if changed_scalar(1, True, v, "apart") == 3)
        cases = [Case(job.workloads[0], Family.EDGE_CASE, v) for v in (tripled, first + len(KINDS))]
        written = session.inputs.plan(cases[0]).buffers[0]
        second_row = 3 * 3 * written.size_bytes // 2
        assert second_row > written.size_bytes + GUARD_BYTES, "usual zones end before it"
        fair = passing(session, kernel, compiled, cases, FaultyShapes([w.dimensions for w in job.workloads]))
        assert [c.variant for c in fair] == [first + len(KINDS)]
        with closing(DeviceSession(job, session.ports)) as other:
            assert other.inputs.seed != session.inputs.seed
            drawn = [s.inputs.plan(cases[0]).arguments[-1] for s in (session, other)]
            assert drawn[0] == drawn[1]


SMALL_BLOCK = 16
"""Shapes by lot are often multiples of it."""


def whole_blocks() -> Job:
    """A job whose grid leaves out what is no whole block, and that is its own reference."""
    source = "__kernel void scale(__global const float* x, __global float* y, const int n) {\n"
    source += "  const int i = get_global_id(0);\n  if (i < n) y[i] = 2.0f * x[i];\n}\n"
    fields = scale_job().model_dump()
    launch = {"grid": [f"n // {SMALL_BLOCK}"], "block": [str(SMALL_BLOCK)]}
    fields["kernel"] |= {"source": source, "launch": launch}
    changes = {"parameters": [], "reference": {"kind": "kernel"}}
    return Job.model_validate(fields | changes | {"workloads": [{"dimensions": {"n": LISTED}}]})


def test_a_shape_of_which_the_user_s_kernel_leaves_a_part_is_fair_to_nobody(
    opencl_info: DeviceInfo, pool: CompilePool
) -> None:
    """What both launches left would set the scale, and with it the tolerance."""
    with tuned(whole_blocks(), opencl_info, pool) as session:
        shapes = [c.dimensions["n"] for c in session.baseline.cases]
        assert any(n != LISTED for n in shapes)
        assert all(n % SMALL_BLOCK == 0 for n in shapes)
