"""`init` on kernels that take structs by value."""

from pathlib import Path

import pytest
import yaml

from tests.extensions.scaffold.test_init import job_of, written
from warpsmith.cli.validate import Wishes, validate
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.settings import Settings

HEADER = """#pragma once
namespace lib {
enum class Mode { A, B };
struct Base { int window = -1; };
struct __align__(16) Tile { float4 scale; unsigned char flags[3], more; };
template <typename T, int N> struct Params : Base {
  using Value = T;
  Value* out;
  const float *x, bias;
  Tile tiles[N];
  Mode mode;
  unsigned long long stride_n, extents[2][N];
  __host__ __device__ Params() : out(nullptr) { mode = Mode::A; }
  __device__ T at(int i) const { return T(x[i] + bias); }
  static constexpr int kRank = N;
};
}
"""
KERNEL = """#include <cuda_fp16.h>
#include "params.cuh"
namespace lib {
template <typename T, int RANK> __global__ void k(Params<T, RANK> p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p.out[i] = p.at(i);
}
}
"""


def plain(job: Job) -> list[tuple[str, str]]:
    """Name and role of every field of the first argument."""
    return [(f.name, f.role.value) for f in job.kernel.arguments[0].fields or ()]


def test_members_bases_and_arrays_become_fields_that_the_compiler_confirms(tmp_path: Path) -> None:
    source, _ = written(tmp_path, k_dot_cu=KERNEL, params_dot_cuh=HEADER)
    job = job_of([source], tmp_path, entry="lib::k<half, 4>")
    argument = job.kernel.arguments[0]
    assert argument.type == "lib::Params<half, 4>"
    assert plain(job) == [
        ("window", "scalar"),
        ("out", "pointer"),
        ("x", "pointer"),
        ("bias", "scalar"),
        ("tiles", "struct"),
        ("mode", "scalar"),
        ("stride_n", "scalar"),
        ("extents", "scalar"),
    ]
    fields = {f.name: f for f in argument.fields or ()}
    assert (fields["tiles"].count, fields["extents"].count) == (4, 8)
    assert fields["tiles"].align == 16
    assert [(b.name, b.dtype.value if b.dtype else "", b.role.value) for b in job.kernel.buffers] == [
        ("p_out", "float16", "inout"),
        ("p_x", "float32", "input"),
    ]


def test_a_layout_that_init_wrote_compiles_with_its_assertions(tmp_path: Path) -> None:
    plain_header = HEADER.replace("__align__(16) ", "").replace(" : Base", "")
    source, _ = written(tmp_path, k_dot_cu=KERNEL, params_dot_cuh=plain_header)
    target = tmp_path / "job.yaml"
    target.write_text(scaffold([source], target, InitOptions("lib::k<half, 4>")))
    report = validate(target, Wishes(Settings(_env_file=None), compiles=True))
    assert [str(f) for f in report.findings if f.is_error] == []
    assert report.compiled.startswith("compiled for")
    target.write_text(
        target.read_text().replace("name: extents, dtype: uint64", "name: extents, dtype: uint16")
    )
    report = validate(target, Wishes(Settings(_env_file=None), compiles=True))
    assert any("bytes in the job" in str(f) or "static assertion" in str(f) for f in report.findings)


@pytest.mark.parametrize(
    ("declared", "unknown"),
    [
        ("lib::fast_divisor d;", "p.d, a `lib::fast_divisor`"),
        ("unsigned a : 3;", "`the bit field unsigned a : 3` in p, and what follows it"),
        ("float** rows;", "p.rows, a `float**`"),
        ("int a[ELSEWHERE];", "how many elements p.a[ELSEWHERE] has"),
        ("union { int a; float b; };", "`union without a name` in p, and what follows it"),
    ],
)
def test_what_is_not_known_is_named_and_the_rest_is_written(
    tmp_path: Path, declared: str, unknown: str
) -> None:
    text = f"""struct P {{ int first; {declared} }};
    __global__ void k(P p, float* out) {{ out[threadIdx.x] = p.first; }}"""
    (source,) = written(tmp_path, k_dot_cu=text)
    made = scaffold([source], tmp_path / "job.yaml", InitOptions())
    assert unknown in made
    fields = yaml.safe_load(made)["kernel"]["arguments"][0]["fields"]
    assert fields[0] == {"name": "first", "dtype": "int32", "value": 1024}


def test_private_members_leave_out_the_type_whose_layout_the_compiler_would_check(tmp_path: Path) -> None:
    text = """class P { int a; public: int b; };
    __global__ void k(P p, float* out) { out[threadIdx.x] = p.b; }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    job = job_of([source], tmp_path)
    assert plain(job) == [("a", "scalar"), ("b", "scalar")]
    assert job.kernel.arguments[0].type is None


def test_structs_of_opencl_have_a_name_behind_their_body(tmp_path: Path) -> None:
    text = """typedef struct { float alpha; int2 size; } Params;
    __kernel void k(const Params p, __global float* out) { out[get_global_id(0)] = p.alpha; }"""
    (source,) = written(tmp_path, k_dot_cl=text)
    job = job_of([source], tmp_path)
    assert plain(job) == [("alpha", "scalar"), ("size", "scalar")]
    assert job.kernel.arguments[0].type == "Params"


def test_a_pack_that_the_entry_leaves_empty_is_no_argument(tmp_path: Path) -> None:
    text = """template <typename T, typename... More> __global__ void k(T* out, More... more) {
      out[threadIdx.x] = T(0);
    }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    assert [a.name for a in job_of([source], tmp_path).kernel.arguments] == ["out"]


def test_a_type_that_holds_nothing_is_a_struct_without_fields(tmp_path: Path) -> None:
    text = """#include <type_traits>
    template <bool Flag> __global__ void k(float* out, std::bool_constant<Flag>) { if (Flag) out[0] = 1; }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    target = tmp_path / "job.yaml"
    target.write_text(scaffold([source], target, InitOptions()))
    report = validate(target, Wishes(Settings(_env_file=None), compiles=True))
    assert [str(f) for f in report.findings if f.is_error] == []
    assert report.job is not None
    assert report.job.kernel.arguments[1].type == "std::bool_constant<false>"


def test_each_of_two_structs_declares_its_own_buffers_once(tmp_path: Path) -> None:
    text = """struct View { float* data; const int* index; }; struct Other { const float* w; Missing m; };
    __global__ void k(View a, View b, Other c, int n) { if (n) a.data[0] = b.data[0] + c.w[0]; }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    target = tmp_path / "job.yaml"
    data = yaml.safe_load(found := scaffold([source], target, InitOptions()))
    names = [b["name"] for b in data["kernel"]["buffers"]]
    assert names == ["a_data", "a_index", "b_data", "b_index", "c_w"]
    assert found.count("c.m, a `Missing`") == 1
