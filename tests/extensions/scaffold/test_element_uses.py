"""`init` takes types and draws from what the body does with a buffer."""

from typing import Any

import pytest
import yaml

from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.job_file import job_scaffold
from warpsmith.job_files.jobfile import parse_job
from warpsmith.source.kernels.kernel_definitions import Dialect


def argument(source: str, name: str = "x", dialect: Dialect = Dialect.CUDA) -> dict[str, Any]:
    """An argument of the scaffold of a source."""
    loaded = yaml.safe_load(job_scaffold(source, "k.cu", dialect, None))
    found: dict[str, Any] = next(a for a in loaded["kernel"]["arguments"] if a["name"] == name)
    return found


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("out[0] = ((const float*)x)[0];", "float32"),
        ("const double* p = reinterpret_cast<const double*>(x); out[0] = p[0];", "float64"),
        ("auto p = static_cast<const __half *>(x); out[0] = p[0];", "float16"),
        ("out[0] = *((unsigned short const*) (x + 4));", "uint16"),
        ("out[0] = ((float*)x)[0]; /* (int*)x */", "float32"),
    ],
)
def test_a_void_pointer_has_the_type_that_the_body_casts_it_to(body: str, dtype: str) -> None:
    got = argument(f"__global__ void k(float* out, const void* x) {{ {body} }}")
    assert (got["dtype"], got["role"], got.get("draw")) == (dtype, "input", None)
    assert argument(f"__global__ void k(float* out, const char* x) {{ {body} }}")["dtype"] == "int8"


def test_a_void_pointer_of_several_types_has_the_first_as_a_guess() -> None:
    body = "out[0] = f ? __half2float(((half*)x)[0]) : ((float*)x)[1];"
    text = job_scaffold(
        f"__global__ void k(float* out, const void* x, bool f) {{ {body} }}", "k.cu", Dialect.CUDA, None
    )
    (row,) = [row for row in text.splitlines() if "name: x," in row]
    assert "dtype: float16" in row and "TODO" in row and "the type of its elements of `const void*`" in row


@pytest.mark.parametrize("body", ["out[0] = 1;", "load(x);"])
def test_a_void_pointer_of_no_certain_type_is_left_to_a_person(body: str) -> None:
    source = f"__global__ void k(float* out, const void* x) {{ {body} }}"
    assert argument(source)["dtype"] == "TODO"
    with pytest.raises(InvalidInput, match="dtype"):
        parse_job(yaml.safe_load(job_scaffold(source, "k.cu", Dialect.CUDA, None)))
    opencl = "__kernel void k(__global float* out, __global void* x) { out[0] = ((__global float2*)x)[0].x; }"
    assert argument(opencl, dialect=Dialect.OPENCL)["dtype"] == "float32"


@pytest.mark.parametrize(
    ("body", "is_positive"),
    [
        ("out[i] = logf(x[i]);", True),
        ("float v = x[i * 2 + 1]; out[i] = rsqrt(v);", True),
        ("out[i] = powf(x[i], 0.3f);", True),
        ("out[i] = __log2f( x[i] );", True),
        ("out[i] = sqrtf(x[i] * x[i]);", False),
        ("out[i] = log1pf(x[i]) + expf(x[i]);", False),
        ("float v = fabsf(x[i]); out[i] = sqrtf(v);", False),
        ("out[i] = x[i]; // log(x[i])", False),
    ],
)
def test_what_a_root_is_taken_of_is_drawn_above_zero(body: str, is_positive: bool) -> None:
    source = f"__global__ void k(float* out, const float* x, int n) {{ int i = threadIdx.x; {body} }}"
    wanted = {"distribution": "uniform", "low": 0.1, "high": 1} if is_positive else None
    assert argument(source).get("draw") == wanted
    assert "draw" not in argument(source, "out")
