"""`init` on the files that people have: headers, kernels in strings, kernels split over files, macros."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.job_files.jobfile import load_job

ADD = """__kernel void add(__global const float *a, __global float *b, const int n) {
    int i = get_global_id(0);
    if (i < n) b[i] = a[i] + 1.0f;
}
"""
ADD_CUDA = """#pragma once
#include "../types.cuh"
namespace lib {
template <typename T> __global__ void add(T* __restrict__ out, const T* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = plus_one(in[i]);
}
}
"""


def written(folder: Path, **files: str) -> list[Path]:
    """Files by name, `__` for a slash and `_dot_` for a dot."""
    paths = []
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(path)
    return paths


def job_of(paths: list[Path], folder: Path, **wanted: Any) -> Job:
    """The job that `init` writes for these files, read back."""
    target = folder / "job.yaml"
    target.write_text(scaffold(paths, target, InitOptions(**wanted)))
    return load_job(target)


def test_a_header_is_included_by_the_job_and_brings_what_it_includes(tmp_path: Path) -> None:
    header, _, _ = written(
        tmp_path / "repository",
        include__lib__deep__add_dot_cuh=ADD_CUDA,
        include__lib__types_dot_cuh="#include <lib/more.cuh>\n",
        include__lib__more_dot_cuh="template <typename T> __device__ T plus_one(T v) { return v + T(1); }\n",
    )
    (tmp_path / "jobs").mkdir()
    kernel = job_of([header], tmp_path / "jobs").kernel
    assert kernel.text == '#include "add.cuh"\n'
    assert kernel.entry == "lib::add<half>"
    assert sorted(kernel.files) == ["lib/deep/add.cuh", "lib/more.cuh", "lib/types.cuh"]
    assert kernel.include_dirs == ("lib/deep", "lib", ".")


def test_enumerations_are_named_with_their_namespaces(tmp_path: Path) -> None:
    text = """namespace lib { enum class Order { kBig, kLittle };
    template <Order O, typename T> __global__ void pack(T* p) { p[0] = T(int(O)); } }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    assert job_of([source], tmp_path).kernel.entry == "lib::pack<static_cast<lib::Order>(0), half>"


def test_a_source_is_named_and_brings_headers_of_folders_above(tmp_path: Path) -> None:
    source, _, _ = written(
        tmp_path,
        src__k_dot_cl='#include "common/types.h"\n#include "near.h"\n' + ADD,
        common__types_dot_h="typedef float real;\n",
        src__near_dot_h="",
    )
    kernel = job_of([source], tmp_path / "src").kernel
    assert "get_global_id" in kernel.text
    assert sorted(kernel.files) == ["common/types.h", "src/near.h"]


def test_a_file_without_kernels_says_which_header_has_them(tmp_path: Path) -> None:
    source, _ = written(
        tmp_path, launch_dot_cu='#include "kernels.cuh"\nvoid launch();\n', kernels_dot_cuh=ADD_CUDA
    )
    with pytest.raises(InvalidInput, match=r"includes headers that define some: kernels\.cuh \(add\)"):
        scaffold([source], tmp_path / "job.yaml", InitOptions())


LINES = ADD.replace("\n", '\\n"  // a comment, "quoted"\n  "')
JOINED = ADD.replace("\n", "\\n")
LITERALS = {
    "lines": 'const char *src =\n  "' + LINES + '";\nint main() { return 0; }\n',
    "raw": f'#include <string>\nstd::string src = R"CL(\n{ADD})CL";\n',
    "file": f'// included where a string is wanted\nR"(\n{ADD})"\n',
    "macro": "static const char* const add_source = STRING(\n" + ADD + ");\n",
    "array": 'const char* src[] = { "'
    + JOINED
    + '",\n "__kernel void two(__global int* a) { a[0] = 1; }" };',
}


@pytest.mark.parametrize("how", LITERALS)
@pytest.mark.parametrize("ending", ["cpp", "cl", "h"])
def test_kernels_that_a_file_holds_as_text_are_found(tmp_path: Path, how: str, ending: str) -> None:
    (source,) = written(tmp_path, **{f"host_dot_{ending}": LITERALS[how]})
    job = job_of([source], tmp_path, entry="add")
    assert job.kernel.backend is Backend.OPENCL
    assert [line.strip() for line in ADD.strip().splitlines()] == [
        line.strip() for line in job.kernel.text.strip().splitlines()[:4]
    ]
    assert "STRING" not in job.kernel.text
    assert [a.name for a in job.kernel.arguments] == ["a", "b", "n"]


def test_a_macro_is_no_kernel_and_neither_is_a_word_in_a_string(tmp_path: Path) -> None:
    plain, log = written(
        tmp_path, k_dot_cl=ADD, log_dot_cpp='puts("no __kernel here"); int f() { return 1; }'
    )
    assert job_of([plain], tmp_path).kernel.entry == "add"
    with pytest.raises(InvalidInput, match="no kernel definition found"):
        scaffold([log], tmp_path / "job2.yaml", InitOptions(backend=Backend.OPENCL))


def test_several_files_are_one_source_in_their_order(tmp_path: Path) -> None:
    paths = written(
        tmp_path, types_dot_opencl="typedef float real;\n", k_dot_opencl=ADD.replace("float", "real")
    )
    kernel = job_of(paths, tmp_path).kernel
    assert kernel.text == '#include "types.opencl"\n#include "k.opencl"\n'
    assert [a.dtype.value for a in kernel.arguments] == ["float32", "float32", "int32"]
    raw = written(tmp_path, a_dot_cl='R"(\ntypedef float real;\n)"', b_dot_cl=f'R"(\n{ADD})"')
    assert job_of(raw[::-1], tmp_path).kernel.text.count("__kernel") == 1


TYPED = """
#if defined(SINGLE)
#define REAL float
#elif PRECISION == 2
#define REAL double
#endif
#ifdef WIDE
typedef long index_t;
#else
typedef int index_t;
#endif
__kernel void scale(__global REAL *x, const index_t n) { x[get_global_id(0)] *= TILE; }
"""


@pytest.mark.parametrize(
    ("defines", "types"),
    [
        ((), ["uint8", "int32"]),
        (("SINGLE",), ["float32", "int32"]),
        (("PRECISION=2", "WIDE"), ["float64", "int64"]),
        (("PRECISION=1",), ["uint8", "int32"]),
        (("REAL=half",), ["float16", "int32"]),
    ],
)
def test_types_follow_the_macros_that_are_given(
    tmp_path: Path, defines: tuple[str, ...], types: list[str]
) -> None:
    (source,) = written(tmp_path, k_dot_cl=TYPED)
    job = job_of([source], tmp_path, defines=defines)
    assert [a.dtype.value for a in job.kernel.arguments] == types
    assert list(job.kernel.options) == [f"-D{d}" if "=" in d else f"-D{d}=1" for d in defines]


def test_macros_that_nothing_defines_are_parameters_and_those_given_are_offered(tmp_path: Path) -> None:
    through = TYPED.replace("*= TILE", "*= AT(2) + CLK_LOCAL_MEM_FENCE").replace(
        "\n__kernel", "\n#define AT(q) (\\\n  (q) * TILE)\n__kernel"
    )
    for text in (TYPED, through):
        (source,) = written(tmp_path, k_dot_cl=text)
        (parameter,) = job_of([source], tmp_path).parameters
        assert (parameter.name, parameter.values) == ("TILE", (16,))
    text = scaffold([source], tmp_path / "j.yaml", InitOptions(defines=("TILE=16",)))
    assert "nothing here defines" not in text
    (cuda,) = written(tmp_path, k_dot_cu="__global__ void k(float* x) { x[0] = FROM_A_TOOLKIT; }")
    assert "#   - {name: FROM_A_TOOLKIT, values: [16]}" in scaffold(
        [cuda], tmp_path / "j.yaml", InitOptions()
    )
    assert job_of([cuda], tmp_path).parameters == ()
    (source,) = written(tmp_path, k_dot_cl=TYPED)
    text = scaffold([source], tmp_path / "j.yaml", InitOptions(defines=("TILE=16",)))
    assert "{name: TILE, values: [8, 16, 32], default: 16}  # macro given with -D" in text
    with pytest.raises(InvalidInput, match="-D: '1=2' is not of the form"):
        scaffold([source], tmp_path / "j.yaml", InitOptions(defines=("1=2",)))


def test_capitals_that_the_source_declares_are_no_macros(tmp_path: Path) -> None:
    text = """typedef struct { int PITCH; } SHAPE;
    __kernel void k(__global float *x, int SIZE) {
        __local float ROWS[64]; const int XSIZE = 4, YSIZE = 2; SHAPE s; REAL3 a; float NEAR;
        x[0] = ROWS[0] + XSIZE * YSIZE + s.PITCH + SIZE + NEAR * MISSING;
    }"""
    (source,) = written(tmp_path, k_dot_cl=text)
    assert [p.name for p in job_of([source], tmp_path).parameters] == ["MISSING"]


def test_what_neither_ending_nor_text_shows_is_asked_for(tmp_path: Path) -> None:
    (source,) = written(tmp_path, k_dot_txt="kernel void k(global float* x) { x[0] = 1; }")
    with pytest.raises(InvalidInput, match="--backend"):
        scaffold([source], tmp_path / "j.yaml", InitOptions())
    assert job_of([source], tmp_path, backend=Backend.OPENCL).kernel.entry == "k"


SURE = [
    ("if (i < n) y[i] = a * x[i] + y[i];", "2.0 * x + y"),
    (
        "if (i >= n) return; y[i] = fmax(x[i], 0.0f) / sqrt(x[i] * x[i] + 1e-6f);",
        "np.fmax(x, 0) / np.sqrt(x * x + 1e-6)",
    ),
    ("if (i < n) { y[i] -= -x[i] * (a + 3); }", "y + x * 5"),
    ("if(i>=n){return;} y[i]=exp(-x[i]);", "np.exp(-x)"),
]


@pytest.mark.parametrize(("body", "meaning"), SURE)
def test_a_reference_is_made_of_one_guarded_element(tmp_path: Path, body: str, meaning: str) -> None:
    text = f"""__kernel void f(__global const float *x, __global float *y, float a, int n) {{
    const int i = get_global_id(0);  // one element
    {body}
}}"""
    (source,) = written(tmp_path, k_dot_cl=text)
    reference = job_of([source], tmp_path).reference
    assert isinstance(reference, NumpyReference)
    names: dict[str, Any] = {"np": np}
    exec(reference.source, names)  # what `init` wrote
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=8), rng.normal(size=8)
    got = names["reference"]({"x": x, "y": y, "a": 2.0, "n": 8}, {"n": 8})
    np.testing.assert_allclose(got["y"], eval(meaning, {"np": np, "x": x, "y": y}))


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) y[i] = x[i + 1];",
        "if (i < n) y[i] = x[i] > 0 ? x[i] : 0;",
        "if (i < n) y[i] = 1 / 2 * x[i];",
        "if (i < n) y[i] = k[i] / 2;",
        "if (i < n) y[i] = i;",
        "if (i < n - 1) y[i] = x[i];",
        "if (i < n) { y[i] = x[i]; y[i] = y[i] * a; }",
        "if (i < n) y[n - i] = x[i];",
        "if (i < n) for (int j = 0; j < n; j++) y[i] = x[i];",
        "if (i < n) y[i] = other(x[i]);",
        "y[i] = x[i];",
        "#ifdef A\n if (i < n) y[i] = x[i];\n#endif",
    ],
)
def test_nothing_is_made_of_what_is_not_sure(tmp_path: Path, body: str) -> None:
    text = f"""__kernel void f(__global const float *x, __global const int *k, __global float *y,
                    float a, int n) {{
    const int i = get_global_id(0);
    {body}
}}"""
    (source,) = written(tmp_path, k_dot_cl=text)
    target = tmp_path / "job.yaml"
    target.write_text(scaffold([source], target, InitOptions()))
    assert load_job(target).reference.kind == "kernel"
    stub = target.read_text().split("yours may begin so:\n")[1].split("budget:")[0]
    shown = yaml.safe_load("\n".join(line.removeprefix("# ") for line in stub.splitlines()))
    assert 'return {"y": ...}' in shown["reference"]["source"]
    compile(shown["reference"]["source"], "stub", "exec")
