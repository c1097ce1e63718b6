"""Macros that would replace names of the source, and names that no macro, size or argument may have."""

from typing import Any

import pytest

from warpsmith.device_checks.compile_check import _rejected
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.job_checks.parameters import replaced_identifiers
from warpsmith.job_files.jobfile import parse_job
from warpsmith.testing.jobs import scale_job

SOURCE = """\
__kernel void scale(__global const float* x, __global float* y, int n) {
  float acc = 0.0f; int i = 1, k = 2;
  for (int i = get_global_id(0), j = 0; i < n; i += get_global_size(0)) { acc = x[i] * n; y[i] = acc; }
}
"""
CUDA = """\
struct P { int rows; };
template <int W> __device__ float twice(float v) { return v * 2; }
extern "C" __global__ void scale(const float* __restrict__ in, float* out, const int n) {
  __shared__ float tile[64];
  P p; dim3 q; size_t at = 0;
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) out[t] = twice<3>(in[t]) + tile[0];
}
"""


def job(source: str, backend: str = "opencl", sizes: str = "m", **changes: Any) -> Job:
    """A job of a kernel `scale` with two buffers and a size."""
    arguments = [
        {"name": "x", "dtype": "float32", "role": "input", "shape": [sizes]},
        {"name": "y", "dtype": "float32", "role": "output", "shape": [sizes]},
        {"name": changes.pop("argument", "n"), "dtype": "int32", "role": "scalar", "value": sizes},
    ]
    kernel = {"backend": backend, "source": source, "entry": changes.pop("entry", "scale")}
    kernel |= {"arguments": arguments, "launch": {"grid": [f"ceil_div({sizes}, 64)"], "block": [64]}}
    kernel |= changes.pop("kernel", {})
    return parse_job({"name": "x", "kernel": kernel, "workloads": [{"dimensions": {sizes: 4096}}]} | changes)


def clashes(source: str, name: str, values: list[Any], backend: str = "opencl", **changes: Any) -> list[str]:
    """Findings about a parameter that would replace something."""
    made = job(source, backend, parameters=[{"name": name, "values": values}], **changes)
    found = list(replaced_identifiers(made))
    assert all(f.is_error for f in found)
    return [str(f) for f in found]


@pytest.mark.parametrize(
    ("source", "backend", "name", "replaced"),
    [
        (SOURCE, "opencl", "n", "argument 'n' in line 1"),
        (SOURCE, "opencl", "acc", "variable 'acc' in line 2"),
        (SOURCE, "opencl", "i", "variable 'i' in line 2"),
        (SOURCE, "opencl", "k", "variable 'k' in line 2"),
        (SOURCE, "opencl", "j", "variable 'j' in line 3"),
        (SOURCE, "opencl", "scale", "kernel 'scale' in line 1"),
        (SOURCE, "opencl", "get_global_id", "function 'get_global_id' in line 3"),
        (CUDA, "cuda", "n", "argument 'n' in line 3"),
        (CUDA, "cuda", "out", "variable 'out' in line 3"),
        (CUDA, "cuda", "W", "variable 'W' in line 2"),
        (CUDA, "cuda", "rows", "variable 'rows' in line 1"),
        (CUDA, "cuda", "P", "variable 'P' in line 1"),
        (CUDA, "cuda", "tile", "variable 'tile' in line 4"),
        (CUDA, "cuda", "p", "variable 'p' in line 5"),
        (CUDA, "cuda", "at", "variable 'at' in line 5"),
        (CUDA, "cuda", "threadIdx", "object 'threadIdx' in line 6"),
        (CUDA, "cuda", "x", "argument 'x' in line 6"),
        (CUDA, "cuda", "twice", "function 'twice' in line 2"),
    ],
)
def test_a_parameter_that_replaces_a_name_of_the_source_is_named(
    source: str, backend: str, name: str, replaced: str
) -> None:
    words = f"parameters.0.name: parameter '{name}' would replace the {replaced}; choose another name"
    assert clashes(source, name, [1, 2, 4], backend) == [words]


def test_options_and_headers_count_as_well() -> None:
    (found,) = replaced_identifiers(job(SOURCE, kernel={"options": ["-Dacc=3", "-DWIDTH=2"]}))
    said = "kernel.options: macro 'acc' would replace the variable 'acc' in line 2; choose another name"
    assert str(found) == said
    assert not list(replaced_identifiers(job(SOURCE + "FOO(n)", kernel={"options": ["-DFOO="]})))
    files = {"h.h": "\nfloat half_of(float value) { return value / 2; }\n"}
    (said,) = clashes('#include "h.h"\n' + SOURCE, "value", [1], kernel={"files": files})
    assert "'value' in line 2 of h.h" in said


@pytest.mark.parametrize(
    ("source", "name", "values"),
    [
        ("#ifndef N\n#define N 4\n#endif\n" + SOURCE, "N", [1, 2]),
        ("#define n 3\n" + SOURCE, "n", [1, 2]),
        ("#ifndef N\nconstant int N = 4;\n#endif\n" + SOURCE, "N", [1, 2]),
        ("#if WAY == 0\nfloat f(float v);\n#else\nfloat WAY(float v);\n#endif\n" + SOURCE, "WAY", [0]),
        (SOURCE.replace("float acc = 0.0f", "T acc = N * 2, b = N, c[N]"), "N", [1, 2]),
        (SOURCE.replace("float acc", "T acc"), "T", ["float", "double"]),
        (SOURCE.replace("0.0f", "T(0) + (T)(1)"), "T", ["float", "double"]),
        (SOURCE.replace("void scale", "void NAME"), "NAME", ["scale", "other"]),
        (SOURCE.replace("float acc = 0.0f;", "float acc = 0; acc = acc * N; if (i < N) return N;"), "N", [1]),
        (SOURCE.replace("float acc", "__attribute__((aligned(N))) float acc"), "N", [4]),
        ("#define TIMES(n) ((n) * 2)\n" + SOURCE.replace("int n", "int m").replace("n;", "m;"), "n", [4]),
        ("/* int N; */ // float N(\n" + SOURCE, "N", [4]),
        (SOURCE, "BLOCK", [64]),
    ],
)
def test_what_macros_are_for_is_no_clash(source: str, name: str, values: list[Any]) -> None:
    assert clashes(source, name, values) == []


def test_templates_of_cuda_take_macros() -> None:
    source = CUDA.replace("twice<3>", "twice<N>").replace("tile[64]", "tile[N], more[N][N + 1]")
    source = source.replace("{\n  __shared__", "{\n#pragma unroll N\n  __shared__")
    source = source.replace("void scale", "void __launch_bounds__(N) scale")
    assert clashes(source, "N", [1, 2], "cuda") == []


@pytest.mark.parametrize(
    "name", ["in", "is", "lambda", "class", "not", "and", "or", "if", "else", "for", "True"]
)
def test_a_word_of_expressions_is_refused_where_a_size_is_named(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        job(SOURCE, sizes=name)
    said = f"workloads.0.dimensions: '{name}' is a word of the expression language; choose another name"
    assert str(caught.value) == said


@pytest.mark.parametrize("name", ["in", "lambda", "double", "nullptr", "xor", "min", "int", "__CUDA_ARCH__"])
def test_a_reserved_parameter_is_refused_once(name: str) -> None:
    parameters = [{"name": name, "values": [1, 2]}]
    with pytest.raises(InvalidInput) as caught:
        job(SOURCE, parameters=parameters, kernel={"launch": {"grid": [name], "block": [name]}})
    assert str(caught.value).startswith(f"parameters.0.name: '{name}' is ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("backend", "name"), [("opencl", "global"), ("opencl", "float"), ("cuda", "new")])
def test_an_argument_with_a_word_of_its_language_is_refused(backend: str, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        job(SOURCE, backend, argument=name)
    said = f"kernel.arguments.2.name: '{name}' is reserved in C; choose another name"
    assert str(caught.value) == said


@pytest.mark.parametrize(("backend", "name"), [("opencl", "new"), ("cuda", "global"), ("cuda", "in")])
def test_words_of_other_languages_are_names_of_arguments(backend: str, name: str) -> None:
    assert job(SOURCE, backend, argument=name).kernel.arguments[2].name == name


@pytest.mark.parametrize("name", ["min", "half", "new", "device", "None_"])
def test_what_clashes_with_nothing_is_a_size(name: str) -> None:
    assert job(SOURCE, sizes=name).workloads[0].dimensions == {name: 4096}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([64, 64.0], "64 equals 64.0; list one of them"),
        ([1, True], "1 equals True; list one of them"),
        ([0, 2, False], "0 equals False; list one of them"),
    ],
)
def test_values_that_are_equal_are_refused(values: list[Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        job(SOURCE, parameters=[{"name": "N", "values": values}])
    assert str(caught.value) == f"parameters.0.values: {words}"


@pytest.mark.parametrize("name", ["größe", "ядро", "カーネル", "naïve2", "größe"])
def test_names_beyond_ascii_are_whole(name: str) -> None:
    source = SOURCE.replace("scale", name).replace("acc", "größe_2")
    assert [str(f) for f in source_findings(job(source, entry=name))] == []
    (found,) = source_findings(job(source, entry=name + "x"))
    assert found.message.endswith(f"found {name}; did you mean '{name}'?")


def test_line_ends_around_words_do_not_count() -> None:
    made = job(SOURCE, entry="scale\n", name="x\n")
    assert (made.kernel.entry, made.name) == ("scale", "x")
    assert made.kernel.arguments == scale_job().kernel.arguments or made.kernel.arguments[0].name == "x"


def test_the_compilers_message_says_what_macros_stand_for_in_its_line() -> None:
    made = job(SOURCE, parameters=[{"name": "acc", "values": ["wide"]}])
    found = Rejected(stage=Stage.COMPILE, reason="error: kernel.cl:2:9: expected ';'")
    configured = Template(kernel=made.kernel, space=made.space).configured(made.space.defaults)
    assert _rejected(found, configured).message.endswith("; in this line the macro 'acc' stands for wide")
