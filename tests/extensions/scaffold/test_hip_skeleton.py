"""What a kernel of HIP gets in place of the headers that it is taken out from."""

import pytest

from warpsmith.extensions.scaffold.extraction.framework_types import framework_lines, number_header
from warpsmith.source.kernels.kernel_definitions import Dialect


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("__half x; uint8_t y;", ["#include <hip/hip_fp16.h>", "#include <cstdint>"]),
        ("__hip_bfloat16 x;", ["#include <hip/hip_bf16.h>"]),
        ("x = CUDART_INF_F + FLT_MAX;", ["#include <hip/hip_math_constants.h>", "#include <float.h>"]),
        ("wmma::fragment f; __nv_fp8_e4m3 v;", []),
    ],
)
def test_headers_of_the_toolkit_are_hip_s(text: str, lines: list[str]) -> None:
    assert framework_lines(text, (), Dialect.HIP) == lines


def test_a_number_type_has_a_header_in_each_dialect() -> None:
    assert number_header("__half2") == "cuda_fp16.h"
    assert number_header("__half2", Dialect.HIP) == "hip/hip_fp16.h"
    assert number_header("int8_t", Dialect.HIP) == "cstdint"
    assert number_header("float4", Dialect.HIP) == ""
