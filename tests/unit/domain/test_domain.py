"""Jobs, spaces, templates, plans: what is accepted, what is refused with the field named, what follows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import DEFAULT_TOLERANCES, EXACT, Job, Tolerance, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import BufferPlan, CaseKey, ScalarPlan, plan_workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.options import refused_options
from warpsmith.domain.reserved_words import reserved
from warpsmith.domain.state import JOB_MOVES, JobState
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import (
    Constraint,
    Parameter,
    ParameterValue,
    Space,
    allows,
    configuration_key,
)
from warpsmith.domain.templates.template import Template, macro_text
from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import parse_job
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job

FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)
X, Y, N = FIELDS["kernel"]["arguments"]
IMAGE: dict[str, Any] = {
    "name": "i",
    "dtype": "float32",
    "role": "input",
    "shape": ["n", 8, 4],
    "image": {"channels": "rgba"},
}
LOCAL = {"name": "s", "dtype": "float32", "role": "local", "shape": ["BLOCK"]}


def problem(**changes: Any) -> tuple[str, str]:
    """Field and message of a job with these fields."""
    with pytest.raises(InvalidInput) as caught:
        parse_job(FIELDS | changes)
    return caught.value.field, caught.value.message


def kernel(**changes: Any) -> dict[str, Any]:
    """The kernel with some fields replaced."""
    return {"kernel": FIELDS["kernel"] | changes}


def launch(**changes: Any) -> dict[str, Any]:
    """The kernel with another launch."""
    return kernel(launch=FIELDS["kernel"]["launch"] | changes)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (kernel(arguments=[X, X, Y]), "kernel.arguments.1.name", "argument x is declared twice"),
        (kernel(arguments=[X, N]), "kernel.arguments", "none has role output or inout"),
        (kernel(arguments=[X | {"value": 3}, Y]), "kernel.arguments.0", "needs a shape and no value"),
        (kernel(arguments=[Y | {"draw": {}}]), "kernel.arguments.0", "is written, not drawn"),
        (kernel(arguments=[N | {"shape": ["n"]}, Y]), "kernel.arguments.0", "needs a value and no shape"),
        (kernel(arguments=[X | {"draw": {"std": -1}}, Y]), "kernel.arguments.0.draw.std", "greater than"),
        (kernel(arguments=[X | {"shape": ["n"] * 9}, Y]), "kernel.arguments.0.shape", "at most 8"),
        (kernel(arguments=[X, Y | {"shape": ["n", "m"]}]), "kernel.arguments.1.shape.1", "unknown name 'm'"),
        (kernel(arguments=[X, Y, N | {"value": "n + 0.5"}]), "kernel.arguments.2.value", "not a whole"),
        (kernel(arguments=[X, Y, N | {"value": "'w'"}]), "kernel.arguments.2.value", "gives a word"),
        (kernel(arguments=[LOCAL | {"value": 3}, Y]), "kernel.arguments.0", "needs a shape (elements of"),
        (kernel(arguments=[Y, LOCAL | {"shape": ["T"]}]), "kernel.arguments.1.shape.0", "unknown name 'T'"),
        (kernel(backend="cuda", arguments=[Y, LOCAL]), "kernel.arguments.1.role", "launch.shared_bytes"),
        (kernel(backend="cuda", arguments=[Y, IMAGE]), "kernel.arguments.1.image", "posted; use a buffer"),
        (kernel(arguments=[Y, IMAGE | {"role": "inout"}]), "kernel.arguments.1", "an input (read_only) or"),
        (kernel(arguments=[Y, IMAGE | {"dtype": "int64"}]), "kernel.arguments.1", "use one of float16"),
        (
            kernel(arguments=[Y, IMAGE | {"shape": ["n", 4]}]),
            "kernel.arguments.1",
            "[height, width, channels]",
        ),
        (kernel(arguments=[Y, IMAGE | {"shape": ["n", 8, 3]}]), "kernel.arguments.1", "shape is 4, not 3"),
        (
            kernel(arguments=[Y, IMAGE | {"image": {"channels": "rgba", "normalized": True}}]),
            "kernel.arguments.1",
            "int8, int16, uint8 and uint16 can be, not float32",
        ),
        (
            kernel(arguments=[Y, IMAGE | {"image": {"channels": "rgb"}}]),
            "kernel.arguments.1.image.channels",
            "'rgba'",
        ),
        (kernel(source=None), "kernel", "exactly one of source and source_file"),
        (kernel(source_file="x.cl"), "kernel", "exactly one of source and source_file"),
        (kernel(source="a\0"), "kernel.source", "NUL"),
        (kernel(entry=""), "kernel.entry", "at least 1"),
        (launch(grid=["n / 1000"]), "kernel.launch.grid.0", "gives 4.096, not a whole number"),
        (launch(block=["BLOCK", "BLOCK - 64"]), "kernel.launch.block.1", "is 0, below 1 (workload 0)"),
        (launch(grid=["n // 1002"]), "kernel.launch.grid.0", "is 0, below 1 (workload 1)"),
        (launch(shared_bytes="-BLOCK"), "kernel.launch.shared_bytes", "is -64, below 0"),
        (launch(shared_bytes="tile"), "kernel.launch.shared_bytes", "unknown name 'tile'"),
        (launch(grid=["device.sm_count"]), "kernel.launch.grid.0", "unknown name 'device.sm_count'"),
        ({"workloads": [{"dimensions": {"n": 1}}] * 2}, "workloads", "listed twice"),
        ({"workloads": [{"dimensions": {}}]}, "kernel.arguments.0.shape.0", "unknown name 'n'"),
        ({"workloads": [{"dimensions": {"a b": 1, "n": 1}}]}, "workloads.0.dimensions.a b.[key]", "pattern"),
        (
            {"workloads": [{"dimensions": {"n": 1}}, {"dimensions": {"n": 1, "m": 1}}]},
            "workloads.1.dimensions",
            "must name ['n'], as the first does",
        ),
        ({"workloads": [{"dimensions": {"n": 1, "PER": 1}}]}, "parameters", "['PER'] are dimensions as well"),
        ({"parameters": [{"name": "A", "values": [1]}] * 2}, "parameters.1.name", "A is declared twice"),
        ({"parameters": [{"name": "for", "values": [1]}]}, "parameters.0.name", "reserved in C"),
        ({"parameters": [{"name": "lambda", "values": [1]}]}, "parameters.0.name", "expression language"),
        ({"constraints": [{"expression": "BLOK < n"}]}, "constraints.0.expression", "unknown name 'BLOK'"),
        ({"tolerances": {"x": {"rtol": 0, "atol": 0}}}, "tolerances.x", "no output or inout argument"),
        ({"reference": {"kind": "numpy", "source": ""}}, "reference.numpy.source", "at least 1"),
        ({"rewrite": {"deny": ["row_group"]}}, "rewrite.deny.0", "'lift_constants'"),
    ],
)
def test_a_bad_job_names_its_field(changes: dict[str, Any], field: str, words: str) -> None:
    got_field, message = problem(**changes)
    assert got_field == field
    assert words in message


def test_expressions_that_name_the_device_wait_for_one() -> None:
    job = parse_job(FIELDS | launch(grid=["device.multiprocessors * 4"]))
    configured = Template(kernel=job.kernel, space=job.space).configured(job.space.defaults)
    assert launch_size(configured, job.workloads[0], DEVICE).grid == (8, 1, 1)


def test_a_job_survives_json_whole() -> None:
    job = scale_job(tolerances={"y": {"rtol": 0, "atol": 0.5}}, constraints=[{"expression": "BLOCK <= n"}])
    assert Job.model_validate_json(job.model_dump_json()) == job
    assert Job.model_validate_json(job.model_dump_json(exclude_unset=True)) == job
    with pytest.raises(ValidationError):
        job.seed = 3  # type: ignore[misc]


def test_tolerances_go_by_argument_then_by_type() -> None:
    job = scale_job(tolerances={"y": {"rtol": 0.25, "atol": 0.5}})
    assert job.tolerance("y", Dtype.FLOAT32) == Tolerance(rtol=0.25, atol=0.5)
    assert job.tolerance("z", Dtype.FLOAT16) == DEFAULT_TOLERANCES[Dtype.FLOAT16]
    assert job.tolerance("z", Dtype.INT32) == EXACT


def test_the_key_of_a_workload_does_not_depend_on_the_order() -> None:
    assert Workload(dimensions={"tokens": 512, "hidden": 64}).key == "hidden=64,tokens=512"
    assert Workload(dimensions={"hidden": 64, "tokens": 512}).key == "hidden=64,tokens=512"


@pytest.mark.parametrize(("dtype", "size"), [("float16", 2), ("bfloat16", 2), ("float64", 8), ("uint8", 1)])
def test_sizes_of_types(dtype: str, size: int) -> None:
    assert Dtype(dtype).size_bytes == size
    assert Dtype(dtype).is_float is ("float" in dtype)


# Parameters and spaces.


@pytest.mark.parametrize(
    ("values", "default", "words"),
    [
        ([], None, "at least 1"),
        ([1, 1], None, "repeat"),
        ([1, 2], 3, "default 3 of P is not among its values"),
        ([1, 2], True, "default True of P is not among its values"),
        ([1.0, 2.0], 1, "default 1 of P is not among its values"),
        (["a b"], None, "pattern"),
        (["float4;"], None, "pattern"),
        (["a\nb"], None, "pattern"),
        (["x\n"], None, "pattern"),
        ([""], None, "pattern"),
        ([None], None, "valid"),
        ([float("nan")], None, "finite"),
        ([[1]], None, "valid"),
    ],
)
def test_bad_parameters(values: list[Any], default: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Parameter(name="P", values=tuple(values), default=default)


def test_values_keep_their_types() -> None:
    given_values = [3, 2.0, True, "float4", 2**40]
    parameter = Parameter.model_validate({"name": "P", "values": given_values})
    again = Parameter.model_validate_json(parameter.model_dump_json())
    for p in (parameter, again):
        assert [type(v) for v in p.values] == [int, float, bool, str, int]
        assert list(p.values) == given_values
    assert [macro_text(v) for v in parameter.values] == ["3", "2.0", "1", "float4", str(2**40)]


def test_the_baseline_is_the_default_or_the_first_value() -> None:
    space = Space(
        parameters=(
            Parameter(name="A", values=(4, 2, 1)),
            Parameter(name="B", values=(False, True), default=False),
            Parameter(name="C", values=(0, 1), default=0),
        )
    )
    assert space.defaults == {"A": 4, "B": False, "C": 0}


def test_a_space_has_each_parameter_once() -> None:
    with pytest.raises(ValidationError, match="parameter A is declared twice"):
        Space(parameters=(Parameter(name="A", values=(1,)), Parameter(name="A", values=(2,))))


def test_the_first_broken_constraint_is_told() -> None:
    wide = Constraint(expression=Expression("BLOCK * PER <= n"), reason="one row")
    even = Constraint(expression=Expression("n % PER == 0"))
    assert allows((wide, even), {"BLOCK": 64, "PER": 2, "n": 128}) is None
    assert allows((wide, even), {"BLOCK": 64, "PER": 4, "n": 130}) is wide
    assert allows((even,), {"PER": 4, "n": 130}) is even
    assert allows((), {}) is None


values = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False)
)
configurations = st.dictionaries(st.sampled_from(["A", "B", "C", "D"]), values)


@given(configurations)
def test_the_key_of_a_configuration_does_not_depend_on_the_order(items: dict[str, ParameterValue]) -> None:
    key = configuration_key(items)
    assert key == configuration_key(dict(reversed(items.items())))
    assert len(key) == 16
    assert int(key, 16) >= 0


def test_keys_tell_like_values_apart_and_never_change() -> None:
    like: list[dict[str, ParameterValue]] = [{"A": 1}, {"A": True}, {"A": 1.0}, {"A": "1x"}, {"B": 1}, {}]
    assert len({configuration_key(c) for c in like}) == len(like)
    # Stored in every database: a new value here orphans every stored trial.
    assert configuration_key({"PER": 4, "BLOCK": 256}) == "b81addb2ef271cd6"


@pytest.mark.parametrize("name", ["int", "defined", "__FILE__", "min", "not", "True"])
def test_reserved_names_are_told(name: str) -> None:
    assert reserved(name)
    assert not reserved(f"WS_{name}")


# Templates and plans.


def test_a_configured_kernel_starts_with_its_macros_and_renames_its_entry() -> None:
    job = scale_job()
    template = Template(kernel=job.kernel.model_copy(update={"entry": "scale<PER, PERX>"}), space=job.space)
    configured = template.configured({"BLOCK": 256, "PER": 4})
    assert configured.source == "#define BLOCK 256\n#define PER 4\n#line 1\n" + SCALE_SOURCE
    assert configured.kernel.entry == "scale<4, PERX>"
    scope = configured.scope({"n": 1}, {"device.warp_size": 32})
    assert scope == {"device.warp_size": 32, "n": 1, "BLOCK": 256, "PER": 4}


def test_a_plan_is_in_numbers() -> None:
    job = scale_job()
    plan = plan_workload(job.kernel, job.workloads[1], dict(job.space.defaults), seed=7)
    assert (plan.key, plan.seed) == (CaseKey("n=1001"), 7)
    x, y, n = plan.arguments
    assert isinstance(x, BufferPlan) and isinstance(y, BufferPlan)
    assert (x.shape, x.elements, x.size_bytes) == ((1001,), 1001, 4004)
    assert n == ScalarPlan("n", Dtype.INT32, 1001)
    assert plan.buffers == (x, y)
    assert plan.mutated == (y,)


def test_a_launch_is_in_numbers_and_three_dimensional() -> None:
    job = scale_job()
    configured = Template(kernel=job.kernel, space=job.space).configured({"BLOCK": 32, "PER": 8})
    size = launch_size(configured, job.workloads[1], DEVICE)
    assert (size.grid, size.block, size.shared_bytes) == ((4, 1, 1), (32, 1, 1), 0)


def test_text_of_a_kernel_needs_its_source() -> None:
    fields = {k: v for k, v in FIELDS["kernel"].items() if k != "source"} | {"source_file": "scale.cl"}
    with pytest.raises(ValueError, match="has not been read"):
        _ = Kernel.model_validate(fields).text


# Options, devices, outcomes, states.


@pytest.mark.parametrize(
    ("backend", "option", "allowed"),
    [
        (Backend.CUDA, "--use_fast_math", True),
        (Backend.CUDA, "-use_fast_math", True),
        (Backend.CUDA, "--std=c++17", True),
        (Backend.CUDA, "--maxrregcount=64", True),
        (Backend.CUDA, "-DX", True),
        (Backend.CUDA, "-DX=1.5e-3", True),
        (Backend.OPENCL, "-cl-fast-relaxed-math", True),
        (Backend.OPENCL, "-cl-std=CL1.2", True),
        (Backend.OPENCL, "--use_fast_math", False),
        (Backend.CUDA, "-cl-mad-enable", False),
        (Backend.CUDA, "-I/etc", False),
        (Backend.CUDA, "--include-path=/etc", False),
        (Backend.CUDA, "-o", False),
        (Backend.CUDA, "--compiler-options=-fplugin=x.so", False),
        (Backend.CUDA, "-DX=1 -I/etc", False),
        (Backend.CUDA, "-DX=1\n-I/etc", False),
        (Backend.CUDA, "-DX=1\n", False),
        (Backend.CUDA, '-DX="a"', False),
        (Backend.CUDA, "@options.txt", False),
        (Backend.CUDA, "", False),
        (Backend.HIP, "-ffast-math", True),
        (Backend.HIP, "-fplugin=x.so", False),
        (Backend.HIP, "--use_fast_math", False),
        (Backend.HIP, "-I/etc", False),
    ],
)
def test_only_listed_options_are_allowed(backend: Backend, option: str, allowed: bool) -> None:
    refused = refused_options(backend, ["-DGOOD=1", option])
    assert list(refused) == ([] if allowed else [option])
    assert all("allowed are" in reason for reason in refused.values())


def test_a_device_class_is_a_word_for_queues() -> None:
    device = DEVICE.model_copy(update={"name": "NVIDIA H200 (SXM)/µ", "driver": "580.65.06"})
    assert device.device_class == "opencl-nvidia-h200-sxm-580.65.06"
    assert len(device.model_copy(update={"name": "x" * 500}).device_class) == 120
    assert device.scope()["device.warp_size"] == 32


def test_an_outcome_is_one_of_three_kinds() -> None:
    adapter: TypeAdapter[Outcome] = TypeAdapter(Outcome)
    rejected = Rejected(stage=Stage.GUARD, reason="wrote 4 bytes before y")
    measured = Measured(timings=(), objective=0.5)
    cut_short = CutShort(timings=(), skipped=("n=4096",), estimate=1.5)
    for outcome in (rejected, measured, cut_short):
        assert adapter.validate_json(adapter.dump_json(outcome)) == outcome
    with pytest.raises(ValidationError, match="kind"):
        adapter.validate_python({"kind": "crashed"})
    with pytest.raises(ValidationError):
        Measured(timings=(), objective=0)


def test_jobs_move_forward_and_ends_are_final() -> None:
    assert JOB_MOVES.keys() == set(JobState)
    for state, targets in JOB_MOVES.items():
        assert state not in targets
        assert JobState.QUEUED not in targets
        assert bool(targets) is not state.is_terminal
        if not state.is_terminal:
            assert {JobState.FAILED, JobState.CANCELLED} <= targets
    assert JobState.DONE not in JOB_MOVES[JobState.QUEUED]
