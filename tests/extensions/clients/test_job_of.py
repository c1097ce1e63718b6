"""A call as a job: arrays and numbers become arguments, and a mistake names what was given."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import (
    Budget,
    Job,
    KernelReference,
    NumpyReference,
    Tolerance,
    Workload,
)
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint, Parameter, holds
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.job_of import TuneCall, job_of
from warpsmith.job_files.jobfile import InvalidJob
from warpsmith.testing.jobs import scale_job

AXPY = """
__kernel void axpy(__global const float* x, __global float* y, __global float* sum, float a, int n) {
  int i = get_global_id(0);
  if (i < n) { sum[i] = a * x[i] + y[i]; y[i] *= 2.0f; }
}
"""
X = np.linspace(-1, 1, 64, dtype=np.float32)
ARRAYS = {"x": X, "y": np.abs(X) + 1, "sum": np.zeros(64, np.float32), "a": 0.5}


def call(kernel: Any = AXPY, arguments: Any = ARRAYS, workloads: Any = None, **others: Any) -> Job:
    """The job of a call, with a launch for 64 elements a block."""
    given: dict[str, Any] = {"grid": "ceil_div(n, 64)", "block": 64} | others
    return job_of(TuneCall(kernel, arguments, {"n": 64} if workloads is None else workloads, **given))


def given(job: Job) -> dict[str, Argument]:
    """Its arguments by name."""
    return {a.name: a for a in job.kernel.arguments}


def refused(**wrong: Any) -> InvalidInput:
    """The error of a call with something wrong."""
    with pytest.raises(InvalidInput) as caught:
        call(**wrong)
    return caught.value


def test_arrays_and_numbers_become_arguments() -> None:
    job = call()
    assert job.name == "axpy" and job.kernel.entry == "axpy" and job.kernel.backend is Backend.OPENCL
    found = given(job)
    assert [(a.name, a.role, a.dtype.value, [e.text for e in a.shape]) for a in found.values()] == [
        ("x", Role.INPUT, "float32", ["n"]),
        ("y", Role.INOUT, "float32", ["n"]),
        ("sum", Role.OUTPUT, "float32", ["n"]),
        ("a", Role.SCALAR, "float32", []),
        ("n", Role.SCALAR, "int32", []),
    ]
    draws = {name: a.draw.distribution.value for name, a in found.items() if a.draw is not None}
    assert draws == {"x": "normal", "y": "uniform"}
    assert found["a"].value is not None and found["a"].value.text == "0.5"
    assert found["n"].value is not None and found["n"].value.text == "n"
    assert [e.text for e in (*job.kernel.launch.grid, *job.kernel.launch.block)] == ["ceil_div(n, 64)", "64"]
    assert isinstance(job.reference, KernelReference)
    assert job.kernel.source == AXPY


def test_a_list_is_in_the_order_of_the_kernel_and_sizes_are_its_dimensions() -> None:
    job = call(arguments=[X, X, X, np.float32(0.1), 64], workloads=None)
    listed = job_of(TuneCall(AXPY, [X, X, X, np.float32(0.1), 64], grid="ceil_div(n, 64)", block=64))
    assert listed == job
    assert listed.workloads == (Workload(dimensions={"n": 64}),)
    value = given(job)["a"].value
    assert value is not None and value.text == "0.1"


def test_parameters_and_restrictions_of_kernel_tuner_need_no_change() -> None:
    """Its values come from lists, ranges and arrays of NumPy; its restrictions are text of Python."""
    job = call(
        parameters={"block_size_x": np.arange(32, 129, 32), "tile": range(1, 3), "scale": [np.float64(0.5)]},
        constraints=["block_size_x * tile <= 192", "block_size_x in (32, 64) or tile == 1", "scale < 1"],
    )
    values = {p.name: p.values for p in job.parameters}
    assert values == {"block_size_x": (32, 64, 96, 128), "tile": (1, 2), "scale": (0.5,)}
    assert all(type(v) is int for v in values["block_size_x"]), "a macro 32.0 is no size of a block"
    scopes = [{"block_size_x": size, "tile": 2, "scale": 0.5} for size in values["block_size_x"]]
    allowed = [scope["block_size_x"] for scope in scopes if holds(job.constraints, scope)]
    assert allowed == [32, 64]


def test_one_constraint_needs_no_list() -> None:
    alone: tuple[Any, ...] = ("B <= n", {"expression": "B <= n"}, Constraint(expression="B <= n"))
    for constraint in alone:
        job = call(parameters={"B": [64, 32]}, constraints=constraint)
        assert [c.expression.text for c in job.constraints] == ["B <= n"]


def test_a_constraint_that_is_neither_text_nor_function_is_refused_with_the_way_out() -> None:
    assert refused(constraints=[3]).message.startswith("this is 3; write an expression")


@pytest.mark.parametrize("values", [64, "fast"])
def test_values_of_a_parameter_that_are_no_list_are_named(values: Any) -> None:
    exc = refused(parameters={"B": values})
    assert (exc.field, exc.message) == (
        "parameters.B",
        f"{values!r} is no list of values; write [{values!r}]",
    )


def test_the_form_of_a_job_may_be_mixed_in() -> None:
    mixed: dict[str, Any] = {
        "x": {"example": X, "draw": {"distribution": "uniform", "low": 0, "high": 1}},
        "y": {"shape": ["n"], "role": "output"},
        "sum": Argument(name="sum", dtype=Dtype.FLOAT32, role=Role.OUTPUT, shape=("n",)),
        "a": "1 / n",
    }
    found = given(call(arguments=mixed))
    assert found["x"].draw == Draw(distribution=Distribution.UNIFORM, low=0, high=1)
    assert (found["y"].role, found["y"].dtype) == (Role.OUTPUT, Dtype.FLOAT32)
    assert found["a"].value is not None and found["a"].value.text == "1 / n"


def test_everything_else_of_a_job_can_be_said() -> None:
    job = call(
        workloads=[{"n": 64}, {"dimensions": {"n": 100}, "weight": 2}, Workload(dimensions={"n": 7})],
        launch=Launch(grid=("ceil_div(n, B)",), block=("B",)),
        grid=None,
        block=None,
        tolerances={"sum": (1e-3, 0), "y": Tolerance(rtol=0, atol=0.5)},
        parameters={"B": [64, 32]},
        constraints=["B <= n", Constraint(expression="B > 1", reason="why not")],
        options=["-cl-mad-enable"],
        name="my axpy",
        budget=Budget(trials=7, rounds=2),
        seconds=9,
        fields={"labels": {"team": "one"}, "rewrite": {"enabled": False}, "kernel": {"compiler": "auto"}},
    )
    assert [w.key for w in job.workloads] == ["n=64", "n=100", "n=7"]
    assert job.tolerances["sum"] == Tolerance(rtol=1e-3, atol=0) and job.tolerances["y"].atol == 0.5
    assert job.parameters == (Parameter(name="B", values=(64, 32)),)
    assert [c.expression.text for c in job.constraints] == ["B <= n", "B > 1"]
    assert job.name == "my axpy" and job.kernel.options == ("-cl-mad-enable",)
    assert (job.budget.trials, job.budget.rounds, job.budget.seconds) == (7, 2, 9)
    assert job.labels == {"team": "one"} and not job.rewrite.enabled


def test_a_reference_is_a_function_or_its_text() -> None:
    def right(x: Any, y: Any, a: Any) -> Any:
        return 2 * y, a * x + y

    made = call(reference=right).reference
    assert isinstance(made, NumpyReference)
    held: dict[str, Any] = {}
    exec(made.source, held)
    found = held[made.function]({"x": np.ones(2), "y": np.full(2, 3.0), "a": 4.0, "n": 2}, {"n": 2})
    assert found["y"].tolist() == [6, 6] and found["sum"].tolist() == [7, 7]
    text = call(reference="def f(inputs, dims):\n    return dict(inputs)\n").reference
    assert isinstance(text, NumpyReference) and text.function == "f"
    held_already = NumpyReference(source="def reference(inputs, dims):\n    return dict(inputs)\n")
    assert call(reference=held_already).reference == held_already
    assert refused(reference=NumpyReference(source="x")).field == "reference.function"
    assert refused(reference=3).field == "reference"


def test_a_file_is_read_with_the_headers_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define TWO 2.0f\n")
    path = tmp_path / "axpy.cl"
    path.write_text('#include "a.h"\n' + AXPY.replace("2.0f", "TWO"))
    for kernel in (path, str(path)):
        job = call(kernel)
        assert job.kernel.files == {"a.h": "#define TWO 2.0f\n"}
        assert job.kernel.source == path.read_text()


def test_local_memory_and_vectors() -> None:
    source = """
    __kernel void k(__global float4* x, __local float* tile, float2 ab) {
      tile[get_local_id(0)] = ab.x; x[get_global_id(0)].x = tile[0];
    }"""
    x = np.ones((16, 4), np.float32)
    found = given(call(source, {"x": x, "ab": (1, 2.5)}, {"n": 16}, grid="n // 8", block=[8]))
    assert [e.text for e in found["x"].shape] == ["n", "4"]
    assert found["tile"].role is Role.LOCAL and [e.text for e in found["tile"].shape] == ["(8)"]
    assert [e.text for e in found["ab"].values] == ["1.0", "2.5"]
    own = {"x": x, "tile": {"shape": [8]}, "ab": np.array([1, 2], np.float32)}
    assert [e.text for e in given(call(source, own, {"n": 16}, grid="n // 8", block=8))["tile"].shape] == [
        "8"
    ]


def test_a_sign_of_integers_is_the_kernels() -> None:
    source = "__kernel void k(__global uint* x, __global const char* c) { x[get_global_id(0)] = c[0]; }"
    found = given(call(source, [np.arange(5, dtype=np.int32), np.ones(5, bool)], {"n": 5}))
    assert found["x"].dtype is Dtype.UINT32 and found["c"].dtype is Dtype.INT8


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"kernel": "nothing.cl"}, "kernel", "nothing.cl: no such file; give the path of a source"),
        ({"kernel": "int f(int x) { return x; }"}, "backend", "its text does not say what it is"),
        ({"kernel": AXPY + AXPY.replace("axpy", "b")}, "entry", "name one of axpy, b"),
        ({"entry": "axpi"}, "entry", "it has axpy"),
        ({"backend": "metal"}, "backend", "'metal' is none; give cuda or opencl"),
        ({"arguments": [X]}, "arguments", "1 are given; axpy takes 5 (x, y, sum, a, n)"),
        ({"arguments": {"summ": X}}, "arguments.summ", "did you mean 'sum'?"),
        ({"arguments": {**ARRAYS, "x": None}}, "arguments.x", "NoneType is no array"),
        ({"arguments": {**ARRAYS, "a": X}}, "arguments.a", "array of float32 with shape (64,) is no number"),
        ({"arguments": {**ARRAYS, "a": math.inf}}, "arguments.a", "is inf; an argument by value is a finite"),
        ({"arguments": {**ARRAYS, "n": 1.5}}, "arguments.n", "1.5 is no whole number"),
        ({"arguments": {**ARRAYS, "n": 65}}, "arguments.n", "is 65, and n of the first workload 64"),
        ({"arguments": {"x": X, "y": X, "sum": X}}, "arguments.a", "is missing: `float a`; give its value"),
        ({"arguments": {"y": X, "sum": X}}, "arguments.x", "give an array as an example"),
        ({"arguments": {**ARRAYS, "x": X.astype(float)}}, "arguments.x", "has float64, and the kernel takes"),
        ({"arguments": {**ARRAYS, "x": X[:9]}}, "arguments.x", "extent 9 (axis 0 of (9,)) is no dimension"),
        ({"workloads": []}, "workloads", "is empty"),
        ({"workloads": {"n": 64.5}}, "workloads.0.n", "64.5 is no whole number"),
        (
            {"grid": None},
            "grid",
            'is missing: blocks (work-groups) along x, y, z, such as ["ceil_div(n, 64)"]',
        ),
        ({"launch": {"grid": [1], "block": [1]}}, "launch", "give it, or grid and block"),
        ({"grid": "m"}, "grid.0", "unknown name 'm'"),
        ({"tolerances": {"sum": (1,)}}, "tolerances.sum", "give two numbers: (rtol, atol)"),
        ({"fields": {"workloads": []}}, "fields.workloads", "leave it out here"),
        ({"fields": {"labls": {}}}, "labls", "did you mean 'labels'?"),
        ({"arguments": {**ARRAYS, "x": {"example": X, "role": "output"}}}, "arguments.x.role", "const"),
    ],
)
def test_a_mistake_names_the_argument_and_the_fix(wrong: dict[str, Any], field: str, words: str) -> None:
    error = refused(**wrong)
    assert (error.field, words in error.message) == (field, True), str(error)


def test_a_template_asks_for_its_arguments() -> None:
    source = "template <typename T> __global__ void k(T* x) { x[threadIdx.x] = 1; }"
    error = refused(kernel=source, arguments=[X])
    assert error.field == "entry" and "k is a template of T; give its arguments" in error.message
    assert given(call(source, [X], entry="k<float>"))["x"].dtype is Dtype.FLOAT32


def test_without_a_size_the_workloads_are_asked_for() -> None:
    source = "__kernel void k(__global float* x) { x[get_global_id(0)] = 1; }"
    with pytest.raises(InvalidInput, match="workloads: is missing, and no argument is a size"):
        job_of(TuneCall(source, [X], grid=1, block=64))


def test_a_whole_job_may_be_given(tmp_path: Path) -> None:
    job = scale_job()
    data = job.model_dump(mode="json", exclude_unset=True)
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(data))
    for kernel in (job, data, path, str(path)):
        assert job_of(TuneCall(kernel)) == job
    changed = job_of(TuneCall(job, name="other", seconds=3.0))
    assert changed.name == "other"
    assert changed.budget == job.budget.model_copy(update={"seconds": 3.0})
    assert isinstance(changed.kernel, Kernel) and changed.kernel == job.kernel


@pytest.mark.parametrize(
    "other", [{"arguments": [X]}, {"grid": 1}, {"reference": "def f(): ..."}, {"tolerances": {"y": (0, 0)}}]
)
def test_of_a_whole_job_only_name_and_budget_are_changed(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="a whole job is given, which has its own") as caught:
        job_of(TuneCall(scale_job(), **other))
    assert caught.value.field == next(iter(other))


def test_an_error_in_a_job_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: a\nbudgte: {}\n")
    with pytest.raises(InvalidJob, match=r"job\.yaml:2: budgte: no such field"):
        job_of(TuneCall(path))


def test_checks_against_the_source_can_be_left_out() -> None:
    wrong = {**ARRAYS, "x": {"example": X, "role": "output"}}
    assert given(call(arguments=wrong, checks=False))["x"].role is Role.OUTPUT


# Square examples.

MATVEC = """
__kernel void matvec(__global const float* a, __global const float* x, __global float* y, int rows,
                     int columns) {
  int r = get_global_id(0);
  if (r < rows) { y[r] = 0; for (int c = 0; c < columns; c++) y[r] += a[r * columns + c] * x[c]; }
}
"""
SQUARE = {"a": np.random.default_rng(0).random((64, 64), "f4"), "x": X, "y": np.empty(64, np.float32)}
OF_PIXELS = """
__kernel void k(__global const float4* x, __global float4* y, int M, int N) {
  int i = get_global_id(1), j = get_global_id(0);
  if (i < M && j < N) y[j * M + i] = 2.0f * x[i * N + j];
}
"""


def shapes(job: Job) -> dict[str, list[str]]:
    """Shapes of the buffers by name."""
    return {a.name: [e.text for e in a.shape] for a in job.kernel.arguments if a.shape}


def test_the_kernel_s_indices_say_what_a_square_example_is() -> None:
    sizes = {"rows": 64, "columns": 64}
    assert shapes(call(MATVEC, SQUARE, sizes, grid="ceil_div(rows, 64)")) == {
        "a": ["rows", "columns"],
        "x": ["columns"],
        "y": ["rows"],
    }
    flat = {**SQUARE, "a": SQUARE["a"].ravel()}
    cubic = call(MATVEC, flat, {**sizes, "other": 64}, grid="ceil_div(rows, 64)", checks=False)
    assert shapes(cubic)["a"] == ["rows * columns"]


def test_a_square_example_of_vectors_follows_the_names_that_its_numbers_are_given() -> None:
    x = np.random.default_rng(0).random((64, 64, 4), "f4")
    given_names = call(
        OF_PIXELS, [x, x, "height", "width"], {"height": 64, "width": 64}, grid=["width", "height"], block=[1]
    )
    assert shapes(given_names) == {"x": ["height", "width", "4"], "y": ["width", "height", "4"]}
    flat = x.reshape(64, 256)
    assert shapes(call(OF_PIXELS, [flat, flat, 64, 64], {"M": 64, "N": 64}, grid=["N", "M"], block=1)) == {
        "x": ["M", "4 * N"],
        "y": ["N", "4 * M"],
    }


def test_where_the_source_is_silent_one_message_asks_for_all_shapes() -> None:
    source = """
    void f(__global const float* u, __global float* v, int at);
    __kernel void k(__global const float* u, __global float* v, int h, int w) { f(u, v, 1); }"""
    error = refused(kernel=source, arguments=[SQUARE["a"], SQUARE["a"], 64, 64], workloads={"h": 64, "w": 64})
    assert error.field == "arguments.u, arguments.v"
    assert '"u": {"example": ..., "shape": [\'h\', \'w\']}, "v": {"example": ..., ' in error.message


# Examples that nothing is drawn from, and those that would prove nothing.


@pytest.mark.parametrize("held", [np.nan, 1e37, 0.0])
def test_a_buffer_that_is_stored_before_it_is_read_gives_the_same_job_whatever_it_holds(held: float) -> None:
    sizes = {"rows": 64, "columns": 64}
    given_arrays = {**SQUARE, "y": np.full(64, held, np.float32)}
    job = call(MATVEC, given_arrays, sizes, grid="ceil_div(rows, 64)")
    assert job == call(MATVEC, SQUARE, sizes, grid="ceil_div(rows, 64)")
    assert given(job)["y"].draw is None


def test_an_input_of_ones_is_drawn_at_random_with_a_warning() -> None:
    words = r"x is 1.0 everywhere; drawn uniform in \[0, 1\) instead, as a constant would let a wrong"
    with pytest.warns(UserWarning, match=words):
        job = call(arguments={**ARRAYS, "x": np.ones(64, np.float32), "y": np.zeros(64, np.float32)})
    assert given(job)["x"].draw == Draw(distribution=Distribution.UNIFORM, low=0, high=1)
    assert given(job)["y"].draw == Draw(distribution=Distribution.CONSTANT, low=0), "what it adds to"
    asked = {"distribution": "constant", "low": 1}
    kept = call(arguments={**ARRAYS, "x": {"example": np.ones(64, np.float32), "draw": asked}})
    assert given(kept)["x"].draw == Draw(distribution=Distribution.CONSTANT, low=1)


def test_a_call_has_a_minute_unless_it_says_otherwise() -> None:
    assert call().budget.seconds == 60
    assert call(budget={"seconds": 7}).budget.seconds == 7
    assert call(trials=3).budget.trials == 3


def test_numbers_of_numpy_are_extents() -> None:
    assert [e.text for e in call(grid=np.int64(4)).kernel.launch.grid] == ["4"]
    assert [e.text for e in call(grid=np.array([4, 1])).kernel.launch.grid] == ["4", "1"]
