"""What is known of a job by its source: a finding where there is a fault, none where there is none."""

from typing import Any

import pytest

from testbed.example_jobs import EXAMPLES
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.scaffold.source_checks.launch import launch_findings
from warpsmith.extensions.scaffold.source_checks.signature import signature_findings
from warpsmith.job_checks.all_findings import known_findings, unfinished_lines
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import load_job
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job

ADD = (
    "__kernel void add(__global const float *x, __global float *y, const int n) "
    "{ y[get_global_id(0)] = x[n]; }"
)
X = {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]}
Y = {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]}
N = {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"}


def job_of(source: str, *arguments: dict[str, Any], backend: str = "opencl", **kernel: Any) -> Job:
    """A job for the kernel `add` of a source."""
    fields = {
        "backend": backend,
        "source": source,
        "entry": "add",
        "arguments": list(arguments or (X, Y, N)),
        "launch": {"grid": ["ceil_div(n, 64)"], "block": [64]},
    }
    changes = {"kernel": fields | kernel, "workloads": [{"dimensions": {"n": 1000}}], "parameters": []}
    return scale_job(**changes)


def told(found: list[Finding]) -> list[tuple[str, bool]]:
    """Fields, and which are errors."""
    return [(f.field, f.is_error) for f in found]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_nothing_is_found_in_the_examples(path: Any) -> None:
    assert list(known_findings(load_job(path), Settings(_env_file=None))) == []


@pytest.mark.parametrize(
    "source",
    [
        ADD,
        ADD.replace("*x", "* x").replace("*y", "* restrict y"),
        ADD.replace("const float *x", "const float x[]"),
        ADD.replace("float *y", "DATA *y").replace("__kernel", "#define DATA float\n__kernel"),
        ADD.replace("float *y", "real *y").replace("__kernel", "typedef float real;\n__kernel"),
        ADD.replace("float *y", "float4 *y"),
        ADD.replace("float *y", "void *y"),
        ADD.replace("const int n", "unsigned n"),
        ADD.replace("const int n", "const int n_elements"),
        "#ifdef WIDE\n" + ADD.replace("float", "double") + "\n#else\n" + ADD + "\n#endif",
        '#include "kernels.h"\n',
        "#define KERNEL(f) __kernel void f(__global float *x, __global float *y, int n)\nKERNEL(add) {}",
    ],
)
def test_arguments_that_fit_or_that_the_source_leaves_open_are_left_alone(source: str) -> None:
    assert signature_findings(job_of(source)) == []


@pytest.mark.parametrize(
    ("arguments", "expected", "words"),
    [
        (
            (X, Y),
            ("kernel.arguments", True),
            "lists 2; add takes 3 (x, y, n), line 1 of the source; missing: n",
        ),
        ((X, Y, N, N | {"name": "m"}), ("kernel.arguments.3", True), "not one of them: m"),
        ((Y, X, N), ("kernel.arguments.0.name", True), "y stands at place 1, where the kernel takes x"),
        ((X, Y | {"dtype": "float16"}, N), ("kernel.arguments.1.dtype", True), "float16 here, and float32"),
        ((X, Y, N | {"dtype": "int64"}), ("kernel.arguments.2.dtype", True), "int64 here, and int32"),
        ((X, Y, N | {"dtype": "float32"}), ("kernel.arguments.2.dtype", True), "float32 here, and int32"),
        (
            (X, Y, {"name": "n", "dtype": "int32", "role": "input", "shape": [1]}),
            ("kernel.arguments.2.role", True),
            "n is a buffer here and a number in the kernel: `const int n`",
        ),
        (
            ({"name": "x", "dtype": "float32", "role": "scalar", "value": 1}, Y, N),
            ("kernel.arguments.0.role", True),
            "x is a scalar here and a pointer in the kernel",
        ),
        ((X | {"role": "inout"}, Y, N), ("kernel.arguments.0.role", True), "the kernel cannot write it"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    arguments: tuple[dict[str, Any], ...], expected: tuple[str, bool], words: str
) -> None:
    found = signature_findings(job_of(ADD, *arguments))
    assert told(found) == [expected]
    assert words in found[0].message


def test_what_a_kernel_does_with_a_pointer_is_worth_a_warning() -> None:
    source = ADD.replace("const float *x", "float *x")
    found = signature_findings(job_of(source, X | {"role": "output"}, Y | {"role": "input"}, N))
    assert told(found) == [("kernel.arguments.0.role", False), ("kernel.arguments.1.role", False)]


def test_a_type_behind_a_word_that_a_header_may_change_is_worth_a_warning() -> None:
    source = "typedef float real;\n" + ADD.replace("float *y", "real *y")
    wrong = (X, Y | {"dtype": "float16"}, N)
    assert told(signature_findings(job_of(source, *wrong))) == [("kernel.arguments.1.dtype", True)]
    found = signature_findings(job_of('#include "real.h"\n' + source, *wrong))
    assert told(found) == [("kernel.arguments.1.dtype", False)]


def test_an_option_says_what_a_type_stands_for() -> None:
    source = ADD.replace("float *y", "REAL *y")
    (found,) = signature_findings(job_of(source, options=["-DREAL=double"]))
    assert "argument y is float32 here, and float64 in the kernel" in found.message
    assert signature_findings(job_of(source, options=["-DREAL=float"])) == []


def test_shared_memory_and_pointers_to_pointers_are_named() -> None:
    local, own = ADD.replace("__global const", "__local"), X | {"role": "local", "shape": [64]}
    (found,) = signature_findings(job_of(local))
    assert "x is memory of a work-group: `__local float* x`" in found.message
    assert signature_findings(job_of(local, own, Y, N)) == []
    (found,) = signature_findings(job_of(local, own | {"dtype": "float64"}, Y, N))
    assert "argument x is float64 here, and float32" in found.message
    (found,) = signature_findings(job_of(ADD, own, Y, N))
    assert "x is local here, and not in the kernel" in found.message
    (found,) = signature_findings(job_of(ADD.replace("const float *x", "float **x")))
    assert "x is an array of addresses" in found.message


def test_images_and_samplers_are_named() -> None:
    source = "__kernel void add(read_only image2d_t x, write_only image2d_t y) { write_imagef(y, x); }"
    x, y = (a | {"shape": ["n", "n", 4], "image": {"channels": "rgba"}} for a in (X, Y))
    assert signature_findings(job_of(source, x, y)) == []
    for text, arguments, field, words in (
        (
            source,
            (X, y),
            "0.image",
            "x is an image in the kernel: `image2d_t x` in line 1 of the source; say",
        ),
        (source.replace("image2d_t x", "image3d_t x"), (x, y), "0.shape", "image3d_t has 4, channels last"),
        (source.replace("write_only", "read_only"), (x, y), "1.role", "y is output here, and read_only in"),
        (source.replace("write_only", "read_write"), (x, y), "1", "an image that a job cannot pass"),
        (source.replace("image2d_t x", "image2d_array_t x"), (x, y), "0", "an image that a job cannot pass"),
        (
            source.replace("read_only image2d_t x", "sampler_t x"),
            (N | {"name": "x"}, y),
            "0",
            "in the kernel: const",
        ),
        (ADD, (x, Y, N), "0.image", "x is an image here, and not in the kernel"),
    ):
        (found,) = signature_findings(job_of(text, *arguments))
        assert found.field == f"kernel.arguments.{field}"
        assert words in found.message
        assert found.is_error


def test_template_arguments_of_the_entry_say_the_types() -> None:
    source = "template <typename T, int N> __global__ void add(const T* x, T* y, int n) { y[0] = x[n]; }"
    entry = {"backend": "cuda", "entry": "add<__half, 4>"}
    half = [a | {"dtype": "float16"} for a in (X, Y)]
    assert signature_findings(job_of(source, *half, N, **entry)) == []
    found = signature_findings(job_of(source, *half, N, **entry | {"entry": "add<float, 4>"}))
    assert told(found) == [("kernel.arguments.0.dtype", True), ("kernel.arguments.1.dtype", True)]


def test_an_entry_that_is_not_there_comes_with_what_is() -> None:
    (found,) = signature_findings(job_of(ADD, entry="ad"))
    assert found.message == "no kernel 'ad' in the source; found add; did you mean 'add'?"
    (found,) = signature_findings(job_of("void add(void) {}", entry="other"))
    assert found.message == "no kernel 'other': the source defines no __kernel function"


def test_an_entry_that_a_header_may_hold_is_worth_a_warning_beside_one_of_nearly_its_name() -> None:
    source = '#include "more.h"\n' + ADD
    (found,) = signature_findings(job_of(source, entry="addk"))
    assert (found.is_error, found.message[-24:]) == (False, "add; did you mean 'add'?")
    assert signature_findings(job_of(source, entry="transpose")) == []


def launches(job: Job, *devices: Any) -> list[Finding]:
    return list(launch_findings(job, devices))


def test_a_block_beyond_every_device_is_named() -> None:
    launch = {"grid": ["ceil_div(n, 64)"], "block": [8192]}
    assert launches(job_of(ADD, launch=launch)) == []
    (found,) = launches(job_of(ADD, launch=launch), DEVICE)
    assert (found.field, found.message) == ("kernel.launch.block.0", "block x is 8192; test takes 1 to 1024")
    (found,) = launches(job_of(ADD, backend="cuda", launch=launch))
    assert found.message == "block x is 8192; every CUDA device takes 1 to 1024"
    larger = DEVICE.model_copy(
        update={
            "limits": DEVICE.limits.model_copy(update={"max_block_x": 8192, "max_threads_per_block": 8192})
        }
    )
    assert launches(job_of(ADD, launch=launch), DEVICE, larger) == []


def test_a_block_of_too_many_threads_in_all_and_a_grid_that_is_too_large_are_named() -> None:
    (found,) = launches(job_of(ADD, launch={"grid": [100], "block": [64, 32]}), DEVICE)
    assert (found.field, found.message[:38]) == (
        "kernel.launch.block",
        "a block has 64 x 32 = 2048 threads; te",
    )
    (found,) = launches(job_of(ADD, launch={"grid": [16, 70000], "block": [64]}), DEVICE)
    assert found.field == "kernel.launch.grid.1"


GUARDED = (
    "__kernel void add(__global const float* x, __global float* y, int n) {{ int i = get_global_id(0); {} }}"
)


@pytest.mark.parametrize(
    ("body", "is_short"),
    [
        ("if (i < n) y[i] = x[i];", True),
        ("if (i < n) { y[i] = x[i]; y[i + 1] = 0; }", False),
        ("for (; i < n; i += get_global_size(0)) y[i] = x[i];", False),
        ("store(y, i, x[i]);", False),
        ("__global float* p = &y[i]; p[0] = p[1] = p[2] = x[i];", False),
        ("vstore4(vload4(i, x), i, y);", False),
        ("((__global float4*)y)[i] = 0;", False),
    ],
)
def test_a_launch_of_fewer_threads_than_elements_is_a_warning_where_each_writes_one(
    body: str, is_short: bool
) -> None:
    job = job_of(GUARDED.format(body), launch={"grid": [15], "block": [64]})
    found = launches(job)
    assert told(found) == ([("kernel.launch.grid", False)] if is_short else [])
    if is_short:
        assert "960 threads of at most 1 element each cannot write the 1000 elements of y" in found[0].message


@pytest.mark.parametrize(
    ("backend", "body"),
    [("opencl", "y[get_global_id( 1 ) * n + get_global_id(0)] = 0;"), ("cuda", "y[blockIdx.y * n] = 0;")],
)
def test_a_kernel_that_asks_for_an_axis_that_the_launch_lacks_is_worth_a_warning(
    backend: str, body: str
) -> None:
    mark = "__kernel" if backend == "opencl" else "__global__"
    source = f"{mark} void add(const float* x, float* y, int n) {{ /* get_global_id(2) */ {body} }}"
    source = source.replace("float*", "__global float*") if backend == "opencl" else source
    (found,) = launches(job_of(source, backend=backend, launch={"grid": [4096], "block": [64]}))
    assert found.message.endswith("the kernel asks for its place along y too")
    (found,) = launches(job_of(source, backend=backend, launch={"grid": [4096], "block": [64, 4]}))
    assert found.message.startswith("has no axis y, along which the block has 4 threads")
    whole = {"grid": [4096, 1], "block": [64, 4]}
    assert not list(launches(job_of(source, backend=backend, launch=whole)))
    assert launches(job_of(source, backend=backend, launch={"grid": [4096, 1], "block": [64]})) == []


def test_a_launch_of_vectors_covers_as_many_elements_as_they_have() -> None:
    source = GUARDED.format("y[i] = 0;").replace("__global float* y", "__global float4* y")
    assert launches(job_of(source, launch={"grid": ["ceil_div(n, 256)"], "block": [64]})) == []
    assert told(launches(job_of(source, launch={"grid": [1], "block": [64]}))) == [
        ("kernel.launch.grid", False)
    ]


def test_more_memory_than_any_device_has_is_an_error_without_one() -> None:
    job = job_of(ADD).model_copy(
        update={"workloads": (scale_job(workloads=[{"dimensions": {"n": 10**11}}]).workloads[0],)}
    )
    found = list(known_findings(job, Settings(_env_file=None)))
    assert told(found) == [("workloads.0.dimensions", True)]
    assert "have 800 GB, more than any single device has" in found[0].message


def test_the_lines_that_are_marked_are_named_and_those_of_sources_are_not() -> None:
    text = "# Look at every TODO: guesses.\nname: x\nshape: [n]  # TODO: shape\n  // TODO\nvalue: TODO\n"
    found = list(unfinished_lines(text, {4}))
    assert [(f.line, f.is_error) for f in found] == [(3, False), (5, False)]
    assert found[0].message == "TODO is left: shape; fill it in and remove the mark"
