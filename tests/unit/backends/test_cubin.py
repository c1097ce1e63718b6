"""What a cubin holds, read without running anything, from binaries that NVRTC makes here."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import CUDA_DEVICE, kernel
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.backends.binaries.ptx_names import never_named
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.sandbox import CompilePool
from warpsmith.tuning.outputs.binary_checks import persistent_variables, undeclared_globals

SOURCE = """
__device__ int zeroed[4];
__device__ int preset = 7;
__constant__ int table[4] = {1, 2, 3, 4};
__device__ const int fixed[4] = {5, 6, 7, 8};
namespace deep { template <int N> __global__ void inner(int* p) { p[N] = 1; } }
__device__ __noinline__ int helper(int v) { return v * preset + zeroed[v & 3]; }
extern "C" __global__ void plain(int* p) { p[0] = helper(p[1]) + table[p[2] & 3] + fixed[p[3] & 3]; }
extern "C" __global__ void other(int* p) { deep::inner<3>; __shared__ int s[32]; s[0] = p[0]; p[1] = s[0]; }
template __global__ void deep::inner<5>(int*);
"""


def _cubin(source: str, entry: str) -> bytes:
    request = CompileRequest(Backend.CUDA, source, entry, (), (), "nvrtc", "sm_90", 0)
    result = compile_cuda(request)
    assert isinstance(result, Compiled), f"{result.reason}\n{result.log}"
    return result.binary


@pytest.fixture(scope="module")
def cubin() -> bytes:
    """One binary with every kind of symbol."""
    return _cubin(SOURCE, "plain")


def test_every_kernel_is_listed_and_no_helper(cubin: bytes) -> None:
    entries = read_cubin(cubin).entries
    assert {"plain", "other"} <= set(entries)
    assert any("inner" in e for e in entries)
    assert not any("helper" in e for e in entries)
    assert len(entries) == 4


def test_variables_in_device_memory_are_listed_and_constant_memory_is_not(cubin: bytes) -> None:
    """`const` is a promise of the source only: the memory of `fixed` could be written."""
    assert set(read_cubin(cubin).writable_globals) == {"zeroed", "preset", "fixed"}


def test_a_kernel_that_keeps_nothing_has_no_writable_globals() -> None:
    source = '__constant__ int k[2] = {3, 4}; extern "C" __global__ void f(int* p) { p[0] = k[p[1] & 1]; }'
    assert read_cubin(_cubin(source, "f")).writable_globals == ()


def test_a_static_variable_of_a_kernel_is_a_writable_global() -> None:
    source = 'extern "C" __global__ void f(int* p) { __device__ static int calls; p[0] = calls++; }'
    (name,) = read_cubin(_cubin(source, "f")).writable_globals
    assert "calls" in name


def test_an_entry_opened_by_inline_ptx_is_listed() -> None:
    opened = "ret; } .visible .entry evil() { ret;"
    source = f'extern "C" __global__ void f(int* p) {{ p[0] = 1; asm volatile("{opened}"); }}'
    request = CompileRequest(Backend.CUDA, source, "f", (), (), "nvrtc", "sm_90", 0)
    result = compile_cuda(request)
    assert not isinstance(result, Compiled)
    assert "evil" in result.reason


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02" + b"\0" * 11, b"MZ" * 200], ids=len)
def test_what_is_no_cubin_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"ELF|cubin"):
        read_cubin(data)


def test_a_damaged_cubin_is_read_or_refused_and_nothing_else(cubin: bytes) -> None:
    rng = random.Random(4)
    whole = set(read_cubin(cubin).entries)
    for _ in range(400):
        damaged = bytearray(cubin[: rng.randrange(64, len(cubin) + 1)])
        for _ in range(rng.randrange(8)):
            damaged[rng.randrange(min(len(damaged), 64))] = rng.randrange(256)
        try:
            contents = read_cubin(bytes(damaged))
        except ValueError:
            continue
        assert set(contents.entries) <= whole


def test_what_the_compiler_puts_beside_a_source_is_no_variable_of_its() -> None:
    """Texts of printf and assert, and a table that is declared const, must not refuse an honest kernel."""
    pool = CompilePool(workers=1)
    body = 'extern "C" __global__ void f(const float* x, float* y, const int n) {{ {} y[0] = x[0]; }}'
    honest = (
        "#include <cassert>\n" + body.format("assert(n > 0);"),
        "#include <cstdio>\n" + body.format('if (n == 7) printf("n is %d", n);'),
        "__device__ const float t[3] = {1, 2, 3};\n" + body.format("y[1] = t[n % 3];"),
        body.format("static const float t[3] = {1, 2, 3}; y[1] = t[n % 3];"),
        body.format("static const __device__ float t[3] = {1, 2, 3}; y[1] = t[n % 3];"),
    )
    cheating = (
        "__device__ int calls;\n" + body.format("y[1] = calls++;"),
        body.format("static __device__ int calls; y[1] = calls++;"),
        "namespace { __device__ int calls = 3; }\n" + body.format("y[1] = calls++;"),
    )
    try:
        for text, refused in [*((t, False) for t in honest), *((t, True) for t in cheating)]:
            configured = kernel(Backend.CUDA, text)
            found = pool.submit(configured, CUDA_DEVICE).result(HANGS_S)
            assert isinstance(found, Compiled), found
            assert found.globals, text
            assert (undeclared_globals(configured, found, frozenset()) is not None) is refused, text
            assert undeclared_globals(configured, found, frozenset(found.globals)) is None
    finally:
        pool.close()


CUB = """#include <cub/util_type.cuh>
namespace { __device__ int calls; }
template <int B> __global__ void f(const float* x, float* y, const int n) {
  %s
  y[0] = x[0] + n * cub::AlignBytes<float4>::ALIGN_BYTES + calls; if (n == -5) calls = n;
}
"""


def test_static_variables_of_a_header_are_the_same_in_a_template() -> None:
    """Their symbols hold a hash of the source, by which every kernel with CUB was refused."""
    pool = CompilePool(workers=1)
    try:
        users, tuned = (
            kernel(Backend.CUDA, CUB % line, entry="f<2>") for line in ("", "const float a = x[1];")
        )
        own, found = (pool.submit(k, CUDA_DEVICE).result(HANGS_S) for k in (users, tuned))
    finally:
        pool.close()
    assert isinstance(own, Compiled) and isinstance(found, Compiled), (own, found)
    found = replace(found, unnamed=())
    assert set(own.globals) != set(found.globals)
    assert len(own.globals) > 100
    assert undeclared_globals(tuned, found, frozenset(own.globals)) is None
    missing = frozenset(g for g in own.globals if "calls" not in g)
    refused = undeclared_globals(tuned, found, missing)
    assert refused is not None and "calls" in refused.reason
    assert [name.endswith("5callsE") for name in persistent_variables(users, own)] == [True]


SIZES = """#include <cub/block/block_reduce.cuh>
%s
template <int B> __global__ void f(const float* x, float* y, const int n) {
  using Sum = cub::BlockReduce<float, B>;
  __shared__ typename Sum::TempStorage s;
  float v = Sum(s).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) y[0] = v + n;
  %s
}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    """One compile child."""
    pool = CompilePool(workers=1)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def own(pool: CompilePool) -> Compiled:
    """The kernel of a user, with CUB."""
    return _compiled(pool, SIZES % ("", ""), "f<256>", "nvrtc")


def _compiled(pool: CompilePool, text: str, entry: str, compiler: str) -> Compiled:
    found = pool.submit(kernel(Backend.CUDA, text, entry=entry, compiler=compiler), CUDA_DEVICE).result(
        HANGS_S
    )
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"
    return found


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"] if shutil.which("nvcc") else ["nvrtc"])
def test_another_instance_of_a_toolkits_template_is_no_variable_of_the_kernel(
    pool: CompilePool, compiler: str
) -> None:
    """Each block size has constants of its own in CUB, by which every template was refused."""
    own = _compiled(pool, SIZES % ("", ""), "f<256>", compiler)
    text = SIZES % ("", "const float a = x[1];")
    found = _compiled(pool, text, "f<128>", compiler)
    tuned = kernel(Backend.CUDA, text)
    assert undeclared_globals(tuned, found, frozenset(own.globals)) is None
    if compiler == "nvrtc":
        assert undeclared_globals(tuned, replace(found, unnamed=()), frozenset(own.globals)) is not None


@pytest.mark.parametrize(
    ("declared", "statement", "name"),
    [
        ("__device__ int calls;", "y[1] = calls++;", "calls"),
        ("namespace cub { __device__ int calls; }", "y[1] = cub::calls++;", "calls"),
        ("", "static __device__ int calls; y[1] = calls++;", "calls"),
        # By its address, from which another variable begins, or by its name in assembly.
        ("__device__ int pad[64]; __device__ int* const p = pad;", "p[1]++;", "pad"),
        ("__device__ int pad;", 'asm volatile("st.global.u32 [pad], %0;" :: "r"(n));', "pad"),
        # Declared and never named, it still is memory that another variable's end may reach.
        ("__device__ int pad[64];", "", "pad"),
        ("namespace std { __device__ int value; }", "", "value"),
    ],
)
def test_a_variable_that_a_template_declares_is_refused(
    pool: CompilePool, own: Compiled, declared: str, statement: str, name: str
) -> None:
    text = SIZES % (declared, statement)
    found = _compiled(pool, text, "f<128>", "nvrtc")
    refused = undeclared_globals(kernel(Backend.CUDA, text), found, frozenset(own.globals))
    assert refused is not None
    assert name in refused.reason


PASTES = """#define HAS(member) template <class T> struct has_##member { static const bool value; };
HAS(x);
"""


def test_a_constant_that_only_the_compiler_reads_is_allowed_beside_macros_that_make_names(
    pool: CompilePool, own: Compiled
) -> None:
    """Such a macro of its headers cost FlashInfer each configuration with an unrolled loop."""
    loop = "%s\nfor (int i = 0; i < n; i++) y[i] *= 2;"
    text = SIZES % (f"{PASTES}constexpr int count = 4;", loop % "#pragma unroll count")
    found = _compiled(pool, text, "f<256>", "nvrtc")
    assert any("count" in name for name in found.globals)
    assert undeclared_globals(kernel(Backend.CUDA, text), found, frozenset(own.globals)) is None


@pytest.mark.parametrize(
    "changing", ["__device__ int count;", "__device__ int count = 4; constexpr int counts = 4;"]
)
def test_a_variable_beside_macros_that_make_names_is_refused(
    pool: CompilePool, own: Compiled, changing: str
) -> None:
    text = SIZES % (PASTES + changing, "")
    found = _compiled(pool, text, "f<256>", "nvrtc")
    refused = undeclared_globals(kernel(Backend.CUDA, text), found, frozenset(own.globals))
    assert refused is not None
    assert "count" in refused.reason


PTX = """
.visible .global .align 4 .u32 read;
.weak .global .align 1 .u8 idle = 1;
.global .align 8 .u64 pointer = generic(target);
.global .align 4 .b8 target[4];
.extern .global .align 4 .b8 outside[];
.const .align 4 .b8 table[4];
.visible .entry f(.param .u64 f_param_0) {
  ld.global.u32 %r1, [read];
  mov.u64 %rd2, pointer;
  // spoken of
}
"""


def test_a_variable_is_named_by_code_by_other_variables_and_even_by_comments() -> None:
    names = ("read", "idle", "pointer", "target", "outside", "spoken", "of", "unknown", "table")
    assert never_named(PTX, names) == ("idle", "outside")
    assert never_named("", names) == ()
