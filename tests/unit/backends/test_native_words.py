"""Words of preprocessed OpenCL that may not become native code. The compiler's part is in `tests/sandbox`."""

import time

import pytest

from testbed.deadlines import stretched
from warpsmith.backends.opencl.native_words import refused_word


@pytest.mark.parametrize(
    "text",
    [
        'void f(void) { asm("nop"); }',
        'void f(void) { __asm__ volatile("nop"); }',
        'int leave(int) __asm("exit");',
        "__thread int kept;",
        "_Thread_local int kept;",
        "__attribute__((constructor)) void f(void) {}",
        "__attribute__ (( __constructor__ )) void f(void) {}",
        '__attribute((noinline, section(".text"))) __constant int x = 1;',
        '__attribute__((aligned(16), section(")"))) __constant int x = 1;',
        "__attribute__((naked)) void f(void) {}",
        "__attribute__((weak)) int f(int x) { return x; }",
        '__attribute__((ifunc("g"))) void f(void);',
        '__attribute__((alias("g"))) void f(void);',
        '#pragma clang section rodata = ".text"',
        "#pragma clang attribute push(__attribute__((constructor)), apply_to = function)",
        "#pragma weak f",
        "#pragma redefine_extname f system",
        "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable",
        "ulong f(void) { return __builtin_readcyclecounter(); }",
        "ulong f(void) { return __builtin_ia32_rdtsc(); }",
        "ulong f(void) { return __builtin_ia32_rdfsbase64(); }",
        "void* f(void) { return __builtin_return_address(0); }",
        "void* f(void) { return __builtin_frame_address(0); }",
        "__constant char* f(void) { return __builtin_FILE(); }",
        "void f(void) { __builtin_longjmp(0, 1); }",
    ],
)
def test_a_word_is_refused(text: str) -> None:
    assert refused_word(text)


@pytest.mark.parametrize(
    "text",
    [
        "int asmara = 0, weak = 1, section = 2, alias = 3, used = 4;",
        '__constant char* f(void) { return "asm(__builtin_return_address)"; }',
        '#define PAUSE __asm__ volatile("pause")',
        "#define WHERE __FILE__ __DATE__",
        "__attribute__((always_inline, aligned(8), reqd_work_group_size(64, 1, 1))) void f(void) {}",
        "#pragma unroll 4\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
        "float f(int x) { return __builtin_astype((x), float); }",
        "float f(float x) { return __builtin_fmaf(x, x, x) + __builtin_inff() + __builtin_popcount(3); }",
        "int f(int x) { return __builtin_expect(x, 0) + __builtin_clz(x); }",
    ],
)
def test_what_is_harmless_passes(text: str) -> None:
    assert refused_word(text) == ""


@pytest.mark.parametrize("length", [60_000, 240_000])
@pytest.mark.parametrize(
    "piece", ["__attribute__((", "__attribute__ ", "__attribute__((x)", "(", "#", "#pragma OPENCL ", " ", "x"]
)
def test_each_character_is_looked_at_so_many_times(piece: str, length: int) -> None:
    began = time.process_time()
    assert refused_word(piece * (length // len(piece))) == ""
    assert time.process_time() - began < stretched(2.0)


def test_attributes_within_attributes_are_found() -> None:
    assert refused_word("int x __attribute__((aligned(__attribute__((aligned(4))) 8), (weak)));")
    assert refused_word("int x __attribute__((aligned(8)) , weak);")
    assert not refused_word("int x __attribute__((aligned(8))), weak;")
    assert refused_word("__attribute__((aligned(8))) int x; int y __attribute\n((weak")
