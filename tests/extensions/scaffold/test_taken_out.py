"""A kernel taken out of its file: what it reaches comes along, what it does not stays behind."""

import pytest

from warpsmith.extensions.scaffold.extraction.taken_out import File, Pool, Taken, taken_out
from warpsmith.extensions.scaffold.reading.file_declarations import declarations
from warpsmith.source.kernels.kernel_definitions import Dialect

HOST = """
#include <ATen/ATen.h>
#include <cuda_fp16.h>
#include "sizes.h"
#define WIDTH (TILE * 2)
#define UNUSED 7
namespace lib {
enum class Mode { kFast, kExact };
template <typename T> struct Box { T value; };
template <typename T> __device__ T twice(Box<T> b) { return b.value * T(2); }
template <typename T> T twice(T host) { return host; }
std::vector<int> sizes(int n) { return {n}; }
template <typename T>
__launch_bounds__(WIDTH) __global__ void scale(T* out, const T* in, int n) {
  int i = blockIdx.x * WIDTH + threadIdx.x;
  if (i < n) out[i] = twice(Box<T>{in[i]});
}
template __global__ void scale<float>(float*, const float*, int);
__launch_bounds__(WIDTH) __global__ void other(int* out) { out[0] = int(Mode::kExact); }
void launch(at::Tensor x) { scale<float><<<1, WIDTH>>>(nullptr, nullptr, 1); }
}
"""


def taken(text: str, entry: str, dialect: Dialect = Dialect.CUDA, *headers: File) -> Taken:
    """The kernel's own source."""
    found = taken_out(Pool((*headers, File("a", text)), dialect), entry)
    assert found is not None
    return found


def test_what_a_kernel_reaches_comes_along_and_nothing_else() -> None:
    sizes = File(
        "sizes.h",
        "#ifndef SIZES_H\n#define SIZES_H\nconstexpr int TILE = 32;\nconstexpr int FAR = 1;\n#endif\n",
    )
    found = taken(HOST, "scale", Dialect.CUDA, sizes)
    for kept in (
        "void scale",
        "struct Box",
        "__device__ T twice",
        "#define WIDTH",
        "TILE = 32",
        "namespace lib",
    ):
        assert kept in found.text, kept
    for left in (
        "launch(",
        "other",
        "Mode",
        "UNUSED",
        "FAR",
        "std::vector",
        "T host",
        "scale<float>",
        "ATen",
    ):
        assert left not in found.text, left
    assert found.headers_left_out == ("ATen/ATen.h",)
    assert found.text.startswith("#include <cuda_fp16.h>")


def test_the_macro_of_an_include_guard_does_not_hide_what_it_guards() -> None:
    header = File("k.h", "#ifndef K_H\n#define K_H\ntypedef struct { int n; } Sizes;\n#endif\n")
    kernel = "__kernel void f(__global int* x, const Sizes s) { x[0] = s.n; }\n"
    found = taken(kernel, "f", Dialect.OPENCL, header)
    assert "Sizes;" in found.text and "#define K_H" not in found.text


def test_a_kernel_that_begins_in_a_branch_is_taken_with_the_conditional() -> None:
    text = """#if RELAXED
  __kernel
#else
  __kernel __attribute__((reqd_work_group_size(W, 1, 1)))
#endif
void f(__global int* x) { x[get_global_id(0)] = 1; }
#if RELAXED
  __kernel
#else
  __kernel __attribute__((reqd_work_group_size(W, 1, 1)))
#endif
void g(__global int* y) { y[0] = 2; }
"""
    found = taken(text, "g", Dialect.OPENCL).text
    assert found.count("#if RELAXED") == found.count("#endif") == 1
    assert "void g" in found and "void f" not in found
    assert [d.conditions for d in declarations(text)] == [(), ()]


def test_a_function_of_the_host_is_not_taken_for_one_of_the_device() -> None:
    text = "int size(int n) { return n; }\nint count = 3;\n"
    text += "__global__ void f(int* x, int size) { x[0] = size + count; }\n"
    found = taken(text, "f").text
    assert "int size(int n)" not in found and "int count" not in found


def test_a_macro_that_makes_a_function_of_the_device_counts() -> None:
    text = "#define DEVICE __device__ __forceinline__\nDEVICE int one() { return 1; }\n"
    text += "__global__ void f(int* x) { x[0] = one(); }\n"
    assert "int one()" in taken(text, "f").text


@pytest.mark.parametrize(
    ("use", "line"),
    [
        ("c10::Half h = x[0];", "namespace c10 { using Half = __half; }"),
        ("half h = x[0];", "#include <cuda_fp16.h>"),
        ("CUDA_KERNEL_ASSERT(x);", "#define CUDA_KERNEL_ASSERT(condition)"),
        ("using A = at::opmath_type<float>;", "using opmath_type = typename OpMath<T>::type;"),
    ],
)
def test_names_of_frameworks_get_their_meaning(use: str, line: str) -> None:
    assert line in taken(f"__global__ void f(float* x) {{ {use} }}\n", "f").text
    assert line not in taken("__global__ void f(float* x) { x[0] = 1; }\n", "f").text


def test_namespaces_that_are_opened_and_known_stay_open() -> None:
    text = "using namespace nvcuda;\nusing namespace boost;\n__global__ void f(int* x) { x[0] = 1; }\n"
    found = taken(text, "f").text
    assert "using namespace nvcuda;" in found and "boost" not in found


def test_a_file_without_the_kernel_gives_nothing() -> None:
    assert taken_out(Pool((File("a", "__global__ void f(int* x);"),), Dialect.CUDA), "f") is None
