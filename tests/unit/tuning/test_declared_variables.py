"""Which names texts declare as variables that outlive a call, and which of these are constants."""

import time

import pytest

from testbed.deadlines import stretched
from warpsmith.source.declarations.declared_variables import declared_variables

CONSTANTS = [
    ("__device__ const float t[3] = {1, 2, 3};", "t"),
    ("static __device__ constexpr float t[2]{1, 2};", "t"),
    ("static const int t = 5;", "t"),
    ("const __device__ static float t[2] = {1, 2};", "t"),
    ("__device__ float const t[2][2] = {{1, 2}, {3, 4}};", "t"),
    ("__device__ const int t(5);", "t"),
    ("__device__ int* const t = pad;", "t"),
    ("__device__ const int* const t = pad;", "t"),
    ("static constexpr const char* t = words;", "t"),
    ("static const int a = 1, t = 2;", "a t"),
    ("static const int *p = q, t = 2;", "t"),
    ("static const int a[] = {1, 2}, t[] = {3, 4};", "a t"),
    ("namespace deep { inline constexpr int t = 3; }", "t"),
    ("namespace a::b { const int t = 3; }", "t"),
    ("struct S { static constexpr int t = 3; };", "t"),
    ("struct S { static const int t; }; __device__ const int S::t = 3;", "t"),
    ("template <typename T> static constexpr T t = T(3);", "t"),
    ("template <int N, bool B = (N > 3)> struct S { static constexpr int t = N; };", "t"),
    ("template <> __device__ const int t<float> = 3;", "t"),
    ("__device__ const std::array<int, 3> t = {1, 2, 3};", "t"),
    ("__device__ __align__(16) const float t[4] = {1, 2, 3, 4};", "t"),
    ("__device__ const float t[4] __attribute__((aligned(16))) = {1, 2, 3, 4};", "t"),
    ("alignas(16) __device__ const float t[4] = {1};", "t"),
    ("[[maybe_unused]] static const float t[4] = {1};", "t"),
    ("__constant__ float t[4];", "t"),
    ('extern "C" { __constant__ float t[4]; }', "t"),
    ('extern "C" __device__ const int t = 4;', "t"),
    ("#define TABLE static __device__ const\nTABLE int t[2] = {1, 2};", "t"),
    ("#define N 2\n#define T float\n__device__ const T t[N] = {1, 2};", "t"),
    ("__global__ void f(float* y) { static const float t[2] = {1, 2}; y[0] = 2 * t[1]; }", "t"),
    ("__global__ void f(float* y) { if (y[0] > 0) { static constexpr int t = 1; } float t = 2; }", "t"),
    ("__device__ const int t = 1; __device__ void f(int t) { int u = t; t++; }", "t"),
    ("#ifdef A\n__device__ const int t = 1;\n#else\n__device__ const int t = 2;\n#endif", "t"),
    ("__device__ const float t[] = {\n#if A\n1\n#else\n2\n#endif\n};", "t"),
    ("auto f = [] __device__ (int i) mutable { static const int t = 1; return t; };", "t"),
    ("public: static const int t = 1;", "t"),
    ("switch (n) { case 1: { static const int t = 1; } default: break; }", "t"),
    ("__device__ const int t = a < b;", "t"),
]
CHANGING = [
    ("__device__ int t;", "t"),
    ("__device__ int t = 7;", "t"),
    ("__device__ int t{7};", "t"),
    ("__device__ int t(7);", "t"),
    ("__managed__ float t[4];", "t"),
    ("static __device__ int t;", "t"),
    ("__device__ static int a, t;", "a t"),
    ("static int a[] = {1, 2}, t;", "a t"),
    ("__device__ const float* t = pad;", "t"),
    ("__device__ const float *a, *t = pad;", "a t"),
    ("static const float* const a = p, *t = p;", "t"),
    ("__device__ const float& t = pad[0];", "t"),
    ("__device__ const float* t[2] = {pad, pad};", "t"),
    ("__device__ Pair<const int, 3> t;", "t"),
    ("__device__ int (t) = 0;", "t"),
    ("__device__ int (*const t)(const int) = f;", "t"),
    ("__device__ const int (*t)[3];", "t"),
    ("static decltype(const_cast<const int&>(a)) t = 0;", "t"),
    ("__device__ struct { int a; } t;", "t"),
    ("struct S { int a; } t;", "t"),
    ("struct S { static int t; }; __device__ int S::t;", "t"),
    ("struct S { mutable int a; }; __device__ const S t = {};", "t"),
    ("namespace { __device__ int t; } const int b = 1;", "t"),
    ("int t;", "t"),
    ("extern int t;", "t"),
    ("inline int t = 3;", "t"),
    ("template <const int N> __device__ int t;", "t"),
    ("const int t = 1; namespace a { __device__ int t; }", "t"),
    ("__device__ const int t = 1;\n__global__ void f() { static int t; t++; }", "t"),
    ("#if 0\nconst int t = 1;\n#endif\n__device__ int t;", "t"),
    ("#if 0\nconst\n#endif\nint t = 1;", "t"),
    ("#if 0\nconst int t = 1; void f() {\n#endif\nint t = 1;", "t"),
    ("#if 0\nconst int t = 1, b[] = {(\n#endif\n__device__ int t;", "t"),
    ("const int t = 1;\n#define D(x) __device__ int x = 0;\nD(t)\n", "t"),
    ("const int t = 1;\n#define D(x) __device__ int x\n#define E(x) D(x)\nvoid f() { E(t); }", "t"),
    ("const int t = 1;\n#define D __device__ int t = 0\nD;", "t"),
    ("const int t = 1;\n#define X t\n__device__ int X;", "t"),
    ("const int t = 1;\n#define D(x) __device__ int x##_\nD(t);", "t"),
    ("const int t = 1; __device__ int \\\nt;", "t"),
    ("const int t = 1; __device__ int t\\\nt;", "t"),
    ("#define const\n__device__ const int t = 1;", "t"),
    ("#define P float*\n__device__ const P t = 0;", "t"),
    ("const int t = 1; __device__ int t <%0%>;", "t"),
    ("static const bool a = b < c, t = d > e;", "t"),
    ("for (static int t = 0; t < 3; t++) {}", "t"),
    ("void f() NO_THROW { } static int t;", "t"),
    ("auto f = [] { static int t; return t++; };", "t"),
    ("static auto [a, t] = f();", ""),
    ("constant t; struct constant { int a; };", "t"),
    ("const int t = 1;\n#include <a>\nconst\n#include <b>\nint t = 1;", "t"),
]
NO_VARIABLES = [
    "extern __shared__ float t[];",
    "__global__ void f() { __shared__ float t[32]; }",
    "__global__ void f(float* y) { float t = y[0]; for (int t = 0; t < 3; t++) y[t] = t; }",
    "static __device__ float f(const float* t) { return t[0]; }",
    "struct S { int t; float u[4]; };",
    "// __device__ int t;\n/* static int t; */",
    'void f() { printf("static int t;"); }',
    "void f(float* y) { y[0] = y[1] * t; g(t, t[0]); return t; }",
    "using t = int; typedef const int u;",
    "template <class T> using t = T; template <int N>",
]


@pytest.mark.parametrize(("text", "names"), CONSTANTS)
def test_a_constant_is_known_as_one(text: str, names: str) -> None:
    found = declared_variables((text,))
    assert set(names.split()) <= found.constants
    assert found.constants <= found.names
    assert found.are_all_known


@pytest.mark.parametrize(("text", "names"), CHANGING)
def test_what_may_change_is_no_constant(text: str, names: str) -> None:
    found = declared_variables((text,))
    assert not {*names.split(), "t"} & found.constants
    assert set(names.split()) <= found.names


@pytest.mark.parametrize("text", NO_VARIABLES)
def test_what_ends_with_a_call_is_no_variable(text: str) -> None:
    found = declared_variables((text,))
    assert "t" not in found.names
    assert found.are_all_known


@pytest.mark.parametrize(
    ("text", "is_constant"),
    [
        ("__constant float t[2] = {1, 2};", True),
        ("constant float t[2] = {1, 2};", True),
        ("__constant sampler_t t = CLK_FILTER_NEAREST;", True),
        ("__global int t;", False),
        ("global int t = 3;", False),
        ("__global const int t = 3;", True),
        ("constant float* t = 0;", False),
        ("global int* const t = 0;", True),
        ("kernel void f() { static int t; }", False),
    ],
)
def test_address_spaces_of_opencl(text: str, is_constant: bool) -> None:
    found = declared_variables((text,), is_opencl=True)
    assert ("t" in found.constants) is is_constant
    assert "t" in found.names


def test_a_local_pointer_into_global_memory_is_no_variable_of_a_program() -> None:
    text = "kernel void f(global float* x) { global float* t = x + 1; local float u[3]; }"
    assert not declared_variables((text,), is_opencl=True).names


def test_a_parameter_may_name_a_variable() -> None:
    text = "const int t = 1; __device__ int NAME;"
    assert "t" in declared_variables((text,)).constants
    found = declared_variables((text,), ("NAME t",))
    assert "t" not in found.constants
    assert "t" in found.names


def test_all_texts_of_a_job_are_read() -> None:
    own = '#include "a.h"\n__device__ const int t = 1;'
    assert "t" in declared_variables((own, "__device__ int u;")).constants
    assert "t" not in declared_variables((own, "namespace a { __device__ int t; }")).constants
    assert "t" not in declared_variables((own, "const int t = 1; const")).constants


@pytest.mark.parametrize(
    "text",
    [
        "#define D(x) __device__ int x##_\nD(a);",
        "__device__ int a\\\nb;",
        "__device__ int a??/\nb;",
        "#define __device__ static\n",
        "static auto [a, b] = f();",
    ],
)
def test_words_that_are_put_together_may_be_any_variable(text: str) -> None:
    assert not declared_variables((text,)).are_all_known


PIECES = [
    "static ",
    "__device__ ",
    "const ",
    "(",
    ")",
    "{",
    "}",
    "=",
    "x,",
    "<",
    "x<",
    "x<{",
    "::",
    "[",
    "[[",
    "__attribute__((",
    ";",
    "x{}",
    "x={}",
    "static x{}",
    "static x(x",
    "static x,*",
    "case x:",
    "#if x\n",
    "#if x\n(\n#endif\n{",
    "#define x x\nx",
    "D(",
    "D(x)",
    "static const x<const x(x)>x[x]={x},",
    "__device__ const (x{=x,<::[__attribute__((;",
]
BEFORE = ["", "static " * 2000, "#define D(x) static x D\n"]
LENGTH, LONG = 60_000, 240_000


def _read_s(text: str) -> float:
    began = time.process_time()
    declared_variables((text,))
    return time.process_time() - began


@pytest.mark.parametrize("before", BEFORE, ids=["plain", "long", "macro"])
@pytest.mark.parametrize("piece", PIECES)
def test_each_token_is_looked_at_so_many_times(piece: str, before: str) -> None:
    assert _read_s(before + piece * (LENGTH // len(piece))) < stretched(6.0)


@pytest.mark.parametrize("piece", PIECES[::2])
def test_a_text_of_the_largest_size_takes_as_much_longer_as_it_is(piece: str) -> None:
    assert _read_s(piece * (LONG // len(piece))) < stretched(20.0)
