"""Scaffolds are job files: valid with placeholder sizes, or refused at exactly what is marked."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.example_jobs import FAMILIES
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.extensions.scaffold.indices.index_space import BLOCK, GRID, IndexSpace, index_space
from warpsmith.extensions.scaffold.job_file import job_scaffold
from warpsmith.extensions.scaffold.reading.pointer_usage import Usage, pointer_usage
from warpsmith.job_files.jobfile import load_job, parse_job
from warpsmith.source.kernels.kernel_definitions import Dialect

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def made(source: str, entry: str | None = None, dialect: Dialect = Dialect.CUDA) -> str:
    """The scaffold of a source text."""
    return job_scaffold(source, "kernels/k.cu", dialect, entry)


def data(source: str, entry: str | None = None) -> dict[str, Any]:
    """The scaffold as plain data."""
    loaded: dict[str, Any] = yaml.safe_load(made(source, entry))
    return loaded


def job(source: str, entry: str | None = None) -> Job:
    """The scaffold as a job."""
    return parse_job(data(source, entry))


def kernel_with(arguments: str, body: str = "out[0] = 1;") -> str:
    """A kernel with an output, and these arguments."""
    return f"__global__ void k(float* out, {arguments}) {{ {body} }}"


@pytest.mark.parametrize("ending", ["cu", "cl"])
@pytest.mark.parametrize("family", FAMILIES)
def test_examples(family: str, ending: str, tmp_path: Path) -> None:
    source = EXAMPLES / family / f"{family}.{ending}"
    target = tmp_path / "job.yaml"
    target.write_text(scaffold([source], target, InitOptions()))
    got = load_job(target, [source.parent]).kernel
    wanted = load_job(EXAMPLES / family / f"{'cuda' if ending == 'cu' else 'opencl'}.yaml").kernel
    assert got.entry == wanted.entry
    assert got.backend is wanted.backend
    assert got.text == wanted.text
    assert [(a.name, a.dtype, a.role) for a in got.arguments] == [
        (a.name, a.dtype, a.role) for a in wanted.arguments
    ]


def test_launch_follows_what_the_source_says() -> None:
    bounds = (
        "constexpr int W = 4;\ntemplate <int N> __global__ void __launch_bounds__(W * N, 2) k(float* out) {}"
    )
    assert [e.text for e in job(bounds, "k<16>").kernel.launch.block] == ["64"]
    assert [e.text for e in job(kernel_with("int n")).kernel.launch.block] == ["256"]
    opencl = (
        "__attribute__((reqd_work_group_size(8, 4, 1))) __kernel void k(__global int* out) { out[0] = 1; }"
    )
    block = yaml.safe_load(made(opencl, dialect=Dialect.OPENCL))["kernel"]["launch"]["block"]
    assert block == [8, 4, 1]


TEMPLATE = """
namespace ns {
#define TILE 32
template <typename T, typename IdType, int VEC, bool FLAG, Mode M, typename Acc = float, int D = 4>
__global__ void k(const T* x, IdType* ids, Acc* out, IdType count) { out[0] = x[ids[0]] + TILE; ids[1] = 2; }
template <> __global__ void k<half, int, 2, true, Mode::A, half, 1>(const half* x) {}
}
"""


def test_template_arguments_are_guessed_and_marked() -> None:
    text = made(TEMPLATE)
    kernel = parse_job(yaml.safe_load(text)).kernel
    assert kernel.entry == "ns::k<half, int, 8, false, static_cast<Mode>(0)>"
    assert "TODO: template arguments are guesses: T = half, IdType = int, VEC = 8" in text
    assert [a.dtype.value for a in kernel.arguments] == ["float16", "int32", "float32", "int32"]
    assert "There is another definition of it in line 6" in text


def test_template_arguments_of_the_entry_decide_the_types() -> None:
    entry = "ns::k<float, int64_t, 4, true, Mode::B, __nv_bfloat16>"
    kernel = job(TEMPLATE, entry).kernel
    assert kernel.entry == entry
    assert [a.dtype.value for a in kernel.arguments] == ["float32", "int64", "bfloat16", "int64"]


def test_unknown_template_arguments_are_named() -> None:
    text = made("template <typename Traits> __global__ void k(float* out) { out[0] = Traits::x; }")
    assert "TODO: put types or values in the place of Traits" in text
    assert parse_job(yaml.safe_load(text)).kernel.entry == "k<Traits>"


def test_constants_are_suggested_as_parameters() -> None:
    text = made(TEMPLATE)
    start = text.index("# parameters:")
    listed = yaml.safe_load(text[start:].replace("# parameters:", "parameters:").replace("#   -", "  -"))
    assert [p["name"] for p in listed["parameters"]] == ["TILE", "VEC"]
    with_them = parse_job(yaml.safe_load(text) | listed)
    assert with_them.space.defaults == {"TILE": 32, "VEC": 8}


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("Params p", "is passed by value"),
        ("const __grid_constant__ CUtensorMap map", "is passed by value"),
        ("float** p", "pointer to pointers"),
        ("const Params& p", "is a reference"),
    ],
)
def test_what_a_job_cannot_pass_is_refused_by_name(argument: str, why: str) -> None:
    text = made(kernel_with(argument))
    (line,) = [line for line in text.splitlines() if "dtype: TODO" in line]
    assert why in line
    loaded = yaml.safe_load(text)
    with pytest.raises(InvalidInput) as refused:
        parse_job(loaded)
    assert refused.value.field == "kernel.arguments.1.dtype"
    assert "\n" not in refused.value.message
    loaded["kernel"]["arguments"][1]["dtype"] = "int32"
    parse_job(loaded)


@pytest.mark.parametrize(
    ("argument", "dtype", "lanes"),
    [("float4 v", "float32", 4), ("const uint3 v", "uint32", 3), ("int2 v", "int32", 2)],
)
def test_a_vector_by_value_has_a_value_for_each_lane(argument: str, dtype: str, lanes: int) -> None:
    text = made(kernel_with(argument))
    found = parse_job(yaml.safe_load(text)).kernel.arguments[1]
    assert (found.dtype.value, [e.text for e in found.values]) == (dtype, ["1"] * lanes)
    assert "TODO: `" in next(line for line in text.splitlines() if "values:" in line)


def test_local_memory_from_the_host_is_an_argument_with_an_element_a_work_item() -> None:
    source = """kernel __attribute__((reqd_work_group_size(16, 8, 1)))
    void k(global float* out, local float* s, local float4* v, local struct pair* p) { out[0] = 1; }"""
    text = made(source, dialect=Dialect.OPENCL)
    _, *local = parse_job(yaml.safe_load(text)).kernel.arguments
    assert [(a.role.value, a.dtype.value, a.shape[0].text) for a in local] == [
        ("local", "float32", "16 * 8"),
        ("local", "float32", "4 * 16 * 8"),
        ("local", "uint8", "16 * 8"),
    ]
    assert "bytes, of `struct pair*`, that a work-group needs" in text


def test_images_are_arguments_by_the_names_of_their_sizes() -> None:
    source = """__kernel void k(const int w, const int h, __read_only image2d_t a, image3d_t b,
                    write_only image2d_t c) {
      float4 v = read_imagef(a, s, (int2)(w, h)); write_imageui (c, (int2)(0, 0), read_imagei(b, s, z)); }"""
    text = made(source, dialect=Dialect.OPENCL)
    *_, a, b, c = parse_job(yaml.safe_load(text)).kernel.arguments
    assert [(i.role.value, i.dtype.value, [e.text for e in i.shape]) for i in (a, b, c)] == [
        ("input", "float32", ["h", "w", "4"]),
        ("input", "int32", ["n", "h", "w", "4"]),
        ("output", "uint32", ["h", "w", "4"]),
    ]
    assert {i.image.channels.value for i in (a, b, c) if i.image is not None} == {"rgba"}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("sampler_t", "is a sampler, which a job cannot pass; declare it in the kernel: const sampler_t"),
        ("read_write image2d_t", "is an image that a job cannot pass"),
        ("image2d_array_t", "is an image that a job cannot pass"),
    ],
)
def test_samplers_and_other_images_are_marked_with_the_fix(kind: str, words: str) -> None:
    source = f"__kernel void k(__global float *y, {kind} what) {{ y[0] = 1.0f; }}"
    assert words in made(source, dialect=Dialect.OPENCL)


def test_kernels_that_write_nothing_a_job_can_see() -> None:
    only_read = made("__global__ void k(const float* x) {}")
    assert "one argument needs the role output or inout" in only_read
    with pytest.raises(InvalidInput, match="none has role output or inout"):
        parse_job(yaml.safe_load(only_read))
    nothing = made("__global__ void k() {}")
    with pytest.raises(InvalidInput, match=r"kernel\.arguments"):
        parse_job(yaml.safe_load(nothing))


def test_buffers_of_other_types() -> None:
    listed = "const float4* v, const bool* mask, const fp8* raw, const int* ids, const __nv_fp8_e5m2* w, int"
    _, v, mask, raw, ids, w, unnamed = job(kernel_with(listed)).kernel.arguments
    assert (v.dtype.value, v.shape[0].text) == ("float32", "4 * n")
    assert (mask.dtype.value, w.dtype.value) == ("bool", "float8_e5m2")
    assert raw.dtype.value == "uint8"
    assert ids.draw is not None
    assert ids.draw.distribution.value == "constant"
    assert unnamed.name == "argument_6"


def test_names_that_yaml_or_expressions_take_for_something_else() -> None:
    loaded = job(kernel_with("int on, int lambda, float yes, const int* null"))
    assert [a.name for a in loaded.kernel.arguments] == ["out", "on", "lambda", "yes", "null"]
    assert set(loaded.workloads[0].dimensions) == {"n", "on", "lambda_"}


def test_more_integers_than_dimensions() -> None:
    names = [f"size{i}" for i in range(30)]
    loaded = job(kernel_with(", ".join(f"int {n}" for n in names)))
    assert len(loaded.workloads[0].dimensions) == 15
    assert loaded.kernel.arguments[-1].value is not None


TWO = """
namespace a { __global__ void f(int* x) { x[0] = 1; } }
namespace b { __global__ void f(int* x) { x[0] = 1; } }
"""


@pytest.mark.parametrize(
    ("source", "entry", "field", "words"),
    [
        ("int x;", None, "source", "no kernel definition"),
        (TWO, None, "entry", "name one of a::f, b::f"),
        (TWO, "g", "entry", "it has a::f, b::f"),
        (TWO, "f", "entry", "2 such kernels"),
    ],
)
def test_choice_of_the_kernel_is_an_error_that_names_them(
    source: str, entry: str | None, field: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(source, entry)
    assert refused.value.field == field
    assert words in refused.value.message


def test_entry_picks_the_kernel() -> None:
    assert job(TWO, "b::f").kernel.entry == "b::f"
    assert job(TWO, "::a::f").kernel.entry == "a::f"
    special = job(
        "template <class T> __global__ void k(T* x) { x[0] = 1; }\n"
        "template <> __global__ void k<int>(int* x) { x[0] = 2; }",
        "k<int>",
    )
    assert special.kernel.arguments[0].dtype.value == "int32"


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ("{ y = p[i]; }", Usage(True, False, False)),
        ("{ p[i] = y; }", Usage(False, True, False)),
        ("{ p[a[i] + 1].x = y; }", Usage(False, True, False)),
        ("{ p[i] += y; }", Usage(True, True, False)),
        ("{ ++p[i]; }", Usage(True, True, False)),
        ("{ *p = y; }", Usage(False, True, False)),
        ("{ if (p[i] == y) {} }", Usage(True, False, False)),
        ("{ f(p); }", Usage(False, False, True)),
        ("{ atomicAdd(&p[i], 1); }", Usage(False, False, True)),
        ("{ global float4* q = &(p[i]); q[0] = y; }", Usage(False, False, True)),
        ("{ if (a && (p[i])) y = 1; }", Usage(True, False, False)),
        ("{ v.load(p + i); }", Usage(True, False, False)),
        ("{ v.cast_store<8>(p + i); }", Usage(False, True, False)),
        ("{ vstore_half(x, i, p); y = vload4(0, p); }", Usage(True, True, False)),
        ("{ float* q = p + i; q[0] = 1; }", Usage(False, True, False)),
        ("{ const float4* q = reinterpret_cast<const float4*>(p); y = q[0]; }", Usage(True, False, False)),
        ("{ float* q = p; float* r = q + 1; r[0] = 1; y = q[0]; }", Usage(True, True, False)),
        ("{ s.p[0] = 1; t->p[0] = 1; /* p[0] */ }", Usage(False, False, False)),
        ("{ if (i < n) { p[i] = 0; for (j = 0; j < n; j++) p[ i ] += x[j]; } }", Usage(False, True, False)),
        ("{ if (i < n) p[i] = 0; p[i] += y; }", Usage(True, True, False)),
        ("{ if (i < n) { p[i] = 0; } p[i] += y; }", Usage(True, True, False)),
        ("{ p[i] = 0; i += 4; p[i] += y; }", Usage(True, True, False)),
        ("{ p[i] = 0; p[i + 1] += y; }", Usage(True, True, False)),
        ("{ p[i] = p[i] + y; }", Usage(True, True, False)),
        ("{ p[i] += y; p[i] = 0; }", Usage(True, True, False)),
        ("{ p[0] = 0; y = p[0]; }", Usage(False, True, False)),
        ("{ float* q = p; p[i] = 0; y = p[i]; z = q[7]; }", Usage(True, True, False)),
    ],
)
def test_what_a_body_does_with_a_pointer(body: str, usage: Usage) -> None:
    assert pointer_usage(body, "p") == usage


IMAGE = """
__kernel void smooth(__global const float *src, __global const float *mask, __global float *dst,
                     const int width, const int height) {
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int i = 0; i < 5; ++i) {
        const int xx = clamp(x + i - 2, 0, width - 1);
        sum += src[y * width + xx] * mask[i];
    }
    const int at = y * width + x;
    dst[at] = sum;
}
"""
VOLUME = """
__global__ void scale(float* out, const float* in, int nx, int ny, int nz) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int j = threadIdx.y + blockIdx.y * blockDim.y;
  int k = threadIdx.z + blockIdx.z * blockDim.z;
  if (i < nx && j < ny && nz > k) out[(k * ny + j) * nx + i] = 2.f * in[k * nx * ny + j * nx + i];
}
"""
STRIDE = """
__global__ void scale(float* out, const float* in, int rows, int n) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    out[i] = 2.f * in[i];
}
"""


@pytest.mark.parametrize(
    ("source", "dialect", "grid", "block", "shapes"),
    [
        (
            IMAGE,
            Dialect.OPENCL,
            ["ceil_div(width, 16)", "ceil_div(height, 16)"],
            [16, 16],
            [["height", "width"], [5], ["height", "width"]],
        ),
        (
            VOLUME,
            Dialect.CUDA,
            ["ceil_div(nx, 32)", "ceil_div(ny, 8)", "nz"],
            [32, 8],
            [["nz", "ny", "nx"], ["nz", "ny", "nx"]],
        ),
        (STRIDE, Dialect.CUDA, ["ceil_div(n, 256)"], [256], [["n"], ["n"]]),
    ],
    ids=["image", "volume", "stride"],
)
def test_launch_and_shapes_follow_the_bounds_of_each_axis(
    source: str, dialect: Dialect, grid: list[str], block: list[int], shapes: list[list[str]]
) -> None:
    made_of = yaml.safe_load(made(source, dialect=dialect))
    assert made_of["kernel"]["launch"] == {"grid": grid, "block": block}
    assert [a["shape"] for a in made_of["kernel"]["arguments"] if "shape" in a] == shapes
    parse_job(made_of)


def test_what_the_kernel_shows_needs_nobody_to_look() -> None:
    rows = [row for row in made(VOLUME).splitlines()[2:] if "TODO" in row]
    assert [row.split("TODO: ")[1].split(",")[0] for row in rows] == ["the sizes that matter"]
    unclear = made("__global__ void k(float* y, const int* at, int n) { y[at[n]] = 1; }")
    assert "shape: [n]}  # TODO: shape" in unclear
    assert "# TODO: which numbers it may hold (draw)" in unclear


def test_placeholder_sizes_fit_a_device() -> None:
    text = """__global__ void k(float* y, int a, int b, int c) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < a) for (int j = 0; j < b; j++) for (int k = 0; k < c; k++) y[(j * c + k) * a + i] = 1; }"""
    sizes = yaml.safe_load(made(text))["workloads"][0]["dimensions"]
    assert 1 << 24 <= 4 * sizes["a"] * sizes["b"] * sizes["c"] < 256_000_000


def test_a_source_that_is_slow_to_read_gets_no_guess_and_is_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert index_space(VOLUME, Backend.CUDA, "scale").sure >= {GRID, BLOCK, "out", "in"}
    monkeypatch.setattr("warpsmith.extensions.scaffold.indices.index_space.STEPS", 100)
    assert index_space(VOLUME, Backend.CUDA, "scale") == IndexSpace()
    assert data(VOLUME)["kernel"]["launch"]["block"] == [256]


def test_placeholder_sizes_leave_no_extent_below_one() -> None:
    text = """__global__ void k(const float* x, float* y, int low, int high, int edge) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < high - low) y[i] = x[i + low];
      if (i < high * low - edge * high - edge) y[i] += 1; }"""
    data = yaml.safe_load(made(text))
    sizes = data["workloads"][0]["dimensions"]
    assert sizes["high"] > sizes["low"]
    parse_job(data)
