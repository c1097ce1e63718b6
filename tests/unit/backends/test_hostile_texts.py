"""Texts of candidates, and logs of their compilers, that are written to be slow to search."""

import time

import pytest

from testbed.deadlines import stretched
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda import compile as cuda_compile
from warpsmith.backends.cuda import compiled_cubin as cuda_cubin
from warpsmith.backends.cuda.compiled_cubin import is_plain_c, kernel_names
from warpsmith.backends.opencl import compile as opencl_compile
from warpsmith.domain.device import Backend

LENGTH = 60_000
PIECES = [
    "__global__ ",
    "__global__ __x__(",
    "__global__ X(a) ",
    "X(",
    "X (",
    "x ",
    'extern "C" ',
    'extern "C" x ',
    "extern ",
    'extern "C" f(',
    "1",
    "1 bytes ",
    "\n",
    "\r\n",
    " ",
    "kernel.cu(1): error: ",
    "(1",
    "Build on <",
    "ptxas error",
]
SEARCHED = [
    (cuda_cubin, ("_RESOURCES", "_SPILLS", "_SHARED", "_STACK", "_PTXAS_ENTRY")),
    (cuda_compile, ("_ASSEMBLER", "_HOST_ENTITY", "_OF_HOSTS")),
    (opencl_compile, ("_BUILD_ON", "_OUTLIVES", "_SPLICE", "_ASM")),
]


def _request(source: str) -> CompileRequest:
    return CompileRequest(Backend.CUDA, source, "f", (), (), "nvrtc", "sm_90", 0)


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_is_searched_in_linear_time(piece: str) -> None:
    text = piece * (LENGTH // len(piece))
    began = time.process_time()
    for start in ("", "__global__ ", 'extern "C" '):
        kernel_names(start + text)
        is_plain_c(_request(start + text), "f")
    for module, patterns in SEARCHED:
        for name in patterns:
            getattr(module, name).findall(text)
    assert time.process_time() - began < stretched(1.5)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("__global__ void f(int* p) { g(p); }", {"f"}),
        ('extern "C" __global__ void __launch_bounds__(256, 2) f(int* p) {}', {"f"}),
        ("__global__ __launch_bounds__((BLOCK * (2 + 2)), 1) void f(int* p) {}", {"f"}),
        ("__global__ void BOUNDS(256) f (int* p);", {"f"}),
        ("__global__ void SCALE(float* x) { }", {"SCALE"}),
        ("__global__ __launch_bounds__(256) void SCALE(float* x) { }", {"SCALE"}),
        ("template <int N> __global__ void f(); __global__ void g() {}", {"f", "g"}),
        ("template __global__ void deep::f<5>(int*);", set()),
        ("void f(); int g(int x) { return h(x); }", set()),
        ("__global__ void f", set()),
    ],
)
def test_kernels_are_named_by_what_stands_before_their_parameters(code: str, names: set[str]) -> None:
    assert kernel_names(code) == names


@pytest.mark.parametrize(
    ("source", "is_plain"),
    [
        ('extern "C" __global__ void f(int* p) {}', True),
        ('extern "C" __global__ void __launch_bounds__(256) f (int* p) {}', True),
        ('extern "C" { __global__ void f(int* p) {} }', True),
        ('extern "C" int g(); __global__ void f(int* p) {}', False),
        ('extern "C" __global__ void ff(int* p) { f(p); }', False),
        ("__global__ void f(int* p) {}", False),
        ('__global__ void f(int* p); extern "C" int g(int);', False),
    ],
)
def test_a_plain_c_function_is_declared_extern_c(source: str, is_plain: bool) -> None:
    assert is_plain_c(_request(source), "f") is is_plain


def test_an_error_of_host_code_is_found_in_a_log() -> None:
    log = "a\nkernel.cu(3): error: calling f is not allowed in JIT mode\n  f();\n\n"
    assert cuda_compile._HOST_ENTITY.findall(log) == [
        ("kernel.cu", "calling f is not allowed in JIT mode", "  f();")
    ]
    assert cuda_compile._HOST_ENTITY.findall(log.replace("JIT", "any")) == []
    assert cuda_compile._ASSEMBLER.search("x\n  ptxas error : too much shared data")
    assert not cuda_compile._ASSEMBLER.search("ptxas fatal : Unresolved extern function 'f'")
