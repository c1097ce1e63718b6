"""Kernel definitions are read from code as people write it, without a preprocessor."""

import re
from pathlib import Path

import pytest

from testbed.example_jobs import FAMILIES
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.declarations.named_constants import find_constants
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.tokens import blank
from warpsmith.source.tree.syntax_tree import Source

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def one(text: str, dialect: Dialect = Dialect.CUDA) -> KernelDefinition:
    """The only kernel of a source."""
    (kernel,) = find_kernels(text, dialect)
    return kernel


def argument(text: str, prelude: str = "", dialect: Dialect = Dialect.CUDA) -> KernelArgument:
    """The only argument of a kernel declared with it."""
    marker = "__kernel" if dialect is Dialect.OPENCL else "__global__"
    (found,) = one(f"{prelude}\n{marker} void k({text}) {{}}", dialect).arguments
    return found


@pytest.mark.parametrize(
    ("text", "name", "type_text", "pointers", "is_const", "dtype", "lanes"),
    [
        ("float x", "x", "float", 0, False, Dtype.FLOAT32, 1),
        ("const float* __restrict__ x", "x", "const float*", 1, True, Dtype.FLOAT32, 1),
        ("float const *const __restrict x", "x", "float const* const", 1, True, Dtype.FLOAT32, 1),
        ("float* const x", "x", "float* const", 1, False, Dtype.FLOAT32, 1),
        ("half **x", "x", "half**", 2, False, Dtype.FLOAT16, 1),
        ("const half* const* x", "x", "const half* const*", 2, True, Dtype.FLOAT16, 1),
        ("const half** x", "x", "const half**", 2, False, Dtype.FLOAT16, 1),
        ("__nv_bfloat162 const* x", "x", "__nv_bfloat162 const*", 1, True, Dtype.BFLOAT16, 2),
        ("float4 *x", "x", "float4*", 1, False, Dtype.FLOAT32, 4),
        ("const int n = 4", "n", "const int", 0, False, Dtype.INT32, 1),
        ("unsigned n", "n", "unsigned", 0, False, Dtype.UINT32, 1),
        ("unsigned long long int n", "n", "unsigned long long int", 0, False, Dtype.UINT64, 1),
        ("std::int64_t n", "n", "std::int64_t", 0, False, Dtype.INT64, 1),
        ("long long *n", "n", "long long*", 1, False, Dtype.INT64, 1),
        ("bool flags[]", "flags", "bool[]", 1, False, Dtype.BOOL, 1),
        ("const float x[16]", "x", "const float[16]", 1, True, Dtype.FLOAT32, 1),
        ("float (*x)[8]", "x", "float(*)[8]", 1, False, Dtype.FLOAT32, 1),
        ("const __grid_constant__ CUtensorMap map", "map", "const CUtensorMap", 0, False, None, 1),
        ("CUTE_GRID_CONSTANT typename G<A, (B > 2)>::P const p", "p", None, 0, False, None, 1),
        ("std::array<int, 4> a", "a", "std::array<int, 4>", 0, False, None, 1),
        ("std::array<std::pair<int, int>, 4>* a", "a", None, 1, False, None, 1),
        ("[[maybe_unused]] int* __restrict__ p", "p", "int*", 1, False, Dtype.INT32, 1),
        ("__attribute__((aligned(16))) int* p", "p", "int*", 1, False, Dtype.INT32, 1),
        ("float", "", "float", 0, False, Dtype.FLOAT32, 1),
        ("const Params", "", "const Params", 0, False, None, 1),
        ("ns::Params", "", "ns::Params", 0, False, None, 1),
        ("float*", "", "float*", 1, False, Dtype.FLOAT32, 1),
        ("cutlass::half_t* x", "x", "cutlass::half_t*", 1, False, Dtype.FLOAT16, 1),
    ],
)
def test_arguments(
    text: str,
    name: str,
    type_text: str | None,
    pointers: int,
    is_const: bool,
    dtype: Dtype | None,
    lanes: int,
) -> None:
    found = argument(text)
    assert (found.name, found.pointers, found.is_const) == (name, pointers, is_const)
    assert (found.dtype, found.lanes) == (dtype, lanes)
    if type_text is not None:
        assert found.type_text == type_text


def test_types_that_the_file_names() -> None:
    listed = ", ".join(["const float"] * 12)
    prelude = f"using half_type = __half;\ntypedef unsigned int word;\ntypedef void (*made)({listed});\n"
    assert argument("float x", prelude).dtype is Dtype.FLOAT32
    assert argument("const half_type* x", prelude).dtype is Dtype.FLOAT16
    assert argument("word x", prelude).dtype is Dtype.UINT32
    text = "using T = float;\ntemplate <typename T> __global__ void k(T* x) {}"
    assert one(text).arguments[0].dtype is None, "a template parameter hides the file's own name"


def test_macros_that_stand_for_nothing_are_no_type() -> None:
    found = argument("const float* MY_R x", "#define MY_R __restrict__\n")
    assert (found.name, found.type_text) == ("x", "const float*")


def test_references_and_default_values() -> None:
    kernel = one("__global__ void k(const Params& p, int n = f(1, 2), float* x = nullptr) {}")
    assert [a.name for a in kernel.arguments] == ["p", "n", "x"]
    assert [a.is_reference for a in kernel.arguments] == [True, False, False]


HARD = """
// __global__ void in_a_comment(int x) {}
const char* text = "__global__ void in_a_string() {";
const char* code = R"( __global__ void in_a_raw_string() { )";
#define MAKE(name) __global__ void name##_kernel(int x) { \\
  }
namespace outer { namespace {
namespace inner::deep {
struct S { int x; };
template <typename T, int N = (4 > 2 ? 8 : 4), typename = std::enable_if_t<(N > 4)>>
static __global__ void __launch_bounds__(N < 8 ? 128 : 256, 2) __cluster_dims__(2, 1, 1)
    first(T* __restrict__ x, // how many }
          std::array<int, (1 << 2)> a)
{ if (x) { x[0] = '{'; } }
template <typename T> __global__ void first_declared(T* x);
template <> __global__ void special<float, 8>(float* x) {}
template <template <typename> class F, typename... Rest, bool kFlag, ns::Mode M, auto V>
__global__ void packed(F<int> f, Rest... rest) {}
}  // deep
} }
extern "C" { __global__ void c_linkage(int* p) {} }
extern "C" __global__ __launch_bounds__(64) void c_alone(void) {}
template __global__ void instantiated<int>(int);
void __global__ marker_second(int* p) {}
__attribute__((noinline)) __launch_bounds__(32) __global__ void attribute_first(int* p) {}
"""


def test_definitions_in_hard_code() -> None:
    found = {k.qualified_name: k for k in find_kernels(HARD, Dialect.CUDA)}
    assert list(found) == [
        "outer::inner::deep::first",
        "outer::inner::deep::special",
        "outer::inner::deep::packed",
        "c_linkage",
        "c_alone",
        "marker_second",
        "attribute_first",
    ]
    first = found["outer::inner::deep::first"]
    assert first.launch_bounds == "N < 8 ? 128 : 256, 2".replace(" < ", "<")
    assert [(p.kind, p.name, bool(p.default)) for p in first.template] == [
        ("type", "T", False),
        ("value", "N", True),
        ("type", "", True),
    ]
    assert HARD.split("\n")[first.line - 1].lstrip().startswith("first(")
    assert first.body.startswith("{ if (x)")
    assert first.body.endswith("'{'; } }")
    assert found["outer::inner::deep::special"].specialisation == "float, 8"
    packed = found["outer::inner::deep::packed"].template
    assert [(p.kind, p.name, p.is_pack) for p in packed] == [
        ("template", "F", False),
        ("type", "Rest", True),
        ("value", "kFlag", False),
        ("value", "M", False),
        ("value", "V", False),
    ]
    assert [found[n].is_extern_c for n in ("c_linkage", "c_alone", "marker_second")] == [True, True, False]
    assert found["c_alone"].arguments == ()
    assert found["attribute_first"].launch_bounds == "32"


def test_conditionals_inside_a_definition() -> None:
    text = """
#define WIDE 1
#ifdef OLD
template <int A> __global__ void
#else
template <int B> __global__ void
#endif
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)
__launch_bounds__(512, 4) k(
#else
k(
#endif
    int n,
#if WIDE && !defined(OLD)
    const double* x,
#elif 1
    const float* x,
#endif
#ifndef OLD
    float* y
#endif
) {
#if WIDE
  if (n) {
#else
  {
#endif
  }
}
__global__ void after(int m) {}
"""
    first, after = find_kernels(text, Dialect.CUDA)[-2:]
    assert [(a.name, a.type_text) for a in first.arguments] == [
        ("n", "int"),
        ("x", "const double*"),
        ("y", "float*"),
    ]
    assert [p.name for p in first.template] == ["B"]
    assert after.qualified_name == "after"


def test_kernels_of_every_branch_are_found() -> None:
    text = """
namespace a {
#if NEW
__global__ void k(int x) { if (x) {
#else
__global__ void k(float y) { {
#endif
} }
}
__global__ void last() {}
"""
    kernels = find_kernels(text, Dialect.CUDA)
    assert [(k.qualified_name, k.line) for k in kernels] == [("a::k", 4), ("a::k", 6), ("last", 10)]
    assert [a.name for k in kernels for a in k.arguments] == ["x", "y"]


def test_marker_behind_a_macro() -> None:
    assert one('#define KERNEL extern "C" __global__\nKERNEL void k(int x) {}').name == "k"


def test_opencl() -> None:
    text = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__attribute__((reqd_work_group_size(64, 2, 1)))
kernel void k(global const half* restrict x, __constant float4* t, __local float* s, uint n,
              read_only image2d_t image) {}
"""
    kernel = one(text, Dialect.OPENCL)
    assert kernel.launch_bounds == "64, 2, 1"
    assert [(a.name, a.type_text, a.address_space) for a in kernel.arguments] == [
        ("x", "const half*", "global"),
        ("t", "float4*", "constant"),
        ("s", "float*", "local"),
        ("n", "uint", ""),
        ("image", "image2d_t", ""),
    ]
    assert [a.dtype for a in kernel.arguments][:2] == [Dtype.FLOAT16, Dtype.FLOAT32]
    assert find_kernels(text, Dialect.CUDA) == ()


@pytest.mark.parametrize(("ending", "backend"), [("cu", Backend.CUDA), ("cl", Backend.OPENCL)])
@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_the_syntax_tree_on_the_examples(family: str, ending: str, backend: Backend) -> None:
    text = (EXAMPLES / family / f"{family}.{ending}").read_text()
    kernel = one(text, Dialect.from_backend(backend))
    source = Source(text, backend, kernel.name)
    parameters = [
        v for v in source.variables if v.is_parameter and v.scope is not None and v.scope == source.kernel
    ]
    assert [(a.name, a.base, a.is_pointer, a.is_const) for a in kernel.arguments] == [
        (v.name, v.type_text, v.is_pointer, v.is_pointer and v.is_const) for v in parameters
    ]
    assert kernel.body == source.of(source.body)
    assert kernel.arguments


@pytest.mark.parametrize(
    "text",
    ["", "__global__", "__global__ void k(", "#if\n__global__ void k(int {", "}}} #endif", "template <"],
)
def test_broken_text_has_no_kernels(text: str) -> None:
    assert find_kernels(text, Dialect.CUDA) == ()
    assert find_constants(text) == ()


def test_blanking_keeps_every_offset() -> None:
    text = HARD + "int big = 1'000'000; // é\nchar c = '\\''; /* open"
    masked = blank(text)
    assert len(masked) == len(text)
    assert [m.start() for m in re.finditer("\n", masked)] == [m.start() for m in re.finditer("\n", text)]
    assert "in_a_raw_string" not in masked
    assert "1'000'000" in masked
    assert masked.isascii()


def test_constants() -> None:
    text = """
#define TILE 16
#define HALF (TILE / 2)
#define NAME other
#define CALL(x) x
constexpr int kThreads = TILE * 32, kWarps = kThreads / 32;
static const unsigned int LIMIT = 0x40u;
inline constexpr std::size_t kSize = 1 << 10;
constexpr float kScale = 2;
constexpr int kUnknown = sizeof(int);
// #define HIDDEN 3
void f(const int n) { constexpr int kLocal = 4; }
"""
    assert {c.name: (c.value, c.kind, c.is_local) for c in find_constants(text)} == {
        "TILE": (16, "macro", False),
        "HALF": (8, "macro", False),
        "kThreads": (512, "variable", False),
        "kWarps": (16, "variable", False),
        "LIMIT": (64, "variable", False),
        "kSize": (1024, "variable", False),
        "kLocal": (4, "variable", True),
    }
    assert [c.line for c in find_constants(text)][:2] == [2, 3]
