"""Symbols in a job: what the form takes and refuses, and what is known of them from the source."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from tests.symbol_jobs import ARGUMENTS, SOURCE, TAPS, blur_job
from warpsmith.domain.arguments.draw import Distribution
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.memory import buffer_bytes
from warpsmith.domain.jobs.plan import plan_workload
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.sandbox.transport.messages import plan_from_json, plan_to_json
from warpsmith.source.declarations.device_variables import device_variables


def test_a_symbol_is_an_input_that_nobody_allocates() -> None:
    job = blur_job()
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=1)
    assert [b.name for b in plan.buffers] == ["x", "y", "taps"]
    assert [b.name for b in plan.allocated] == ["x", "y"]
    assert [b.name for b in plan.symbols] == ["taps"]
    assert plan_from_json(plan_to_json(plan)) == plan
    assert buffer_bytes(job, job.workloads[0])["taps"] == 20
    assert Job.model_validate(job.model_dump(mode="json")) == job


def test_a_symbol_has_one_element_if_it_has_no_shape_and_its_value_in_each() -> None:
    job = blur_job([TAPS, {"name": "scale", "dtype": "int32", "role": "symbol", "value": "n // 2"}])
    scale = plan_workload(job.kernel, job.workloads[0], {}, seed=1).symbols[1]
    assert scale.shape == (1,)
    assert scale.draw is not None
    assert (scale.draw.distribution, scale.draw.low) == (Distribution.CONSTANT, 500.0)


@pytest.mark.parametrize(
    ("symbol", "kernel", "words"),
    [
        ({"draw": {"std": 2}, "value": 1}, {}, "has a draw and a value; give one of them"),
        ({"values": [1, 2, 3, 4, 5]}, {}, "has no to, fields, type or values"),
        ({"value": "m"}, {}, "kernel.buffers.0.value: in expression 'm'"),
        ({"name": "x"}, {}, "argument x is declared twice"),
        (
            {},
            {"arguments": [TAPS, *ARGUMENTS], "buffers": []},
            r"arguments.0.role: taps is a symbol.*kernel.buffers",
        ),
        (
            {},
            {"backend": "opencl"},
            r"buffers.0.role: OpenCL cannot fill.*initialiser.*`__constant T\* taps`",
        ),
    ],
)
def test_a_symbol_that_cannot_be_filled_is_refused_with_its_field_and_the_fix(
    symbol: dict[str, Any], kernel: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        blur_job([TAPS | symbol], **kernel)


def test_no_address_leads_to_a_symbol() -> None:
    pointer = {"name": "p", "role": "pointer", "to": "taps"}
    with pytest.raises(ValidationError, match=r"no buffer 'taps' is declared; declared are x, y"):
        blur_job(arguments=[*ARGUMENTS, pointer])


@pytest.mark.parametrize(
    ("symbols", "declared", "found"),
    [
        ([TAPS], None, []),
        ([], None, [("kernel.source", False, "list it under kernel.buffers with `role: symbol`")]),
        (
            [TAPS | {"name": "tapz"}],
            None,
            [("kernel.source", False, ""), ("kernel.buffers.0.name", True, "'taps'?")],
        ),
        (
            [TAPS | {"dtype": "int32"}],
            None,
            [("kernel.buffers.0.dtype", True, "and float32 in `float taps`")],
        ),
        ([TAPS | {"dtype": "uint32"}], "__device__ int taps[5];", []),
        ([TAPS], "#include <taps.h>", []),
        ([TAPS], "namespace { __constant__ float4 taps[5]; }\n#define FLOATS", []),
    ],
)
def test_symbols_are_compared_with_what_the_source_declares(
    symbols: Any, declared: str | None, found: list[tuple[str, bool, str]]
) -> None:
    source = SOURCE if declared is None else SOURCE.replace("__constant__ float taps[TAPS];", declared)
    said = [
        f
        for f in source_findings(blur_job(symbols, source))
        if re.match(r"kernel\.(buffers|source)", f.field)
    ]
    assert [(f.field, f.is_error) for f in said] == [(field, is_error) for field, is_error, _ in found]
    assert all(words in f.message for f, (_, _, words) in zip(said, found, strict=True))


def test_variables_are_read_with_type_extents_and_line() -> None:
    text = """
    /* __constant__ float no; */ static __constant__ __align__(16) const float a[N][3];
    __device__ __constant__ unsigned int b, c[2 * N], *d;
    __device__ float e[2] = {1, 2}, f{3};
    __device__ inline float g(float x) { return x; }
    namespace n { __constant__ ns::vec<float> h; }
    """
    found = {
        v.name: (v.line, v.type_text, v.extents, v.is_constant, v.has_value) for v in device_variables(text)
    }
    assert found.pop("a") == (2, "float", ("N", "3"), True, False)
    assert found.pop("b") == (3, "unsigned int", (), True, False)
    assert found.pop("c") == (3, "unsigned int", ("2 * N",), True, False)
    assert found.pop("e") == (4, "float", ("2",), False, True)
    assert found.pop("h") == (6, "ns::vec<float>", (), True, False)
    assert not found.keys() & {"no", "g"}
