"""Structs, vectors and addresses of the job form: what is accepted, their values, what a mistake says."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from tests.argument_jobs import ARGUMENTS, BUFFERS, FIELDS, every_kind
from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.by_value_plan import (
    Address,
    PointerPlan,
    TablePlan,
    ValuePlan,
    given_values,
    number,
)
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.memory import buffer_bytes
from warpsmith.domain.jobs.plan import plan_workload
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.validation_errors import field_problems
from warpsmith.sandbox.transport.messages import plan_from_json, plan_to_json
from warpsmith.testing.jobs import scale_job

Fields = Mapping[str, Any]


def changed(of_name: str, /, **fields: Any) -> Job:
    """The job with one argument or buffer changed; None removes a field."""

    def of(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        made = [a | fields if a["name"] == of_name else a for a in listed]
        return [{k: v for k, v in a.items() if v is not None} for a in made]

    return every_kind(arguments=of(ARGUMENTS), buffers=of(BUFFERS))


def fields_with(name: str, **fields: Any) -> Job:
    """The job with one member of its struct changed; None removes a field."""
    made = [f | fields if f["name"] == name else f for f in FIELDS]
    return changed("p", fields=[{k: v for k, v in f.items() if v is not None} for f in made])


def problem(of: Any, *arguments: Any, **fields: Any) -> tuple[str, str]:
    with pytest.raises(ValidationError) as caught:
        of(*arguments, **fields)
    return field_problems(caught.value.errors(), Job)[0]


@pytest.mark.parametrize(
    ("name", "fields", "field", "words"),
    [
        ("x", {"to": "nothing"}, "kernel.arguments.0.fields.0.to", "no buffer 'nothing' is declared"),
        ("x", {"offset": "n"}, "kernel.arguments.0.fields.0.offset", "x has 5000 elements (workload 0)"),
        ("x", {"offset": -1}, "kernel.arguments.0.fields.0.offset", "is -1"),
        ("x", {"value": 3}, "kernel.arguments.0.fields.0", "pointer x has no value"),
        ("x", {"to": None, "offset": 3}, "kernel.arguments.0.fields.0.offset", "x is a null pointer"),
        ("seen", {"to": ["seen"]}, "kernel.arguments.0.fields.1.to", "lists 1 buffers for 2 pointers"),
        ("seen", {"step": 4}, "kernel.arguments.0.fields.1.step", "no array of pointers to one buffer"),
        ("head", {"values": [1, "m", 3]}, "kernel.arguments.0.fields.2.values.1", "unknown name 'm'"),
        ("head", {"values": [1, 2, -3]}, "kernel.arguments.0.fields.2.values.2", "which uint32 cannot hold"),
        ("head", {"values": [1] * 5}, "kernel.arguments.0.fields.2.values", "head has 5 lanes"),
        ("range", {"fields": [{"name": "low"}]}, "kernel.arguments.0.fields.3.fields.0", "needs a dtype"),
        ("range", {"dtype": "int32"}, "kernel.arguments.0.fields.3.dtype", "its fields have"),
        ("more", {"value": 2}, "kernel.arguments.0.fields.4.value", "is 2, which bool cannot hold"),
        ("more", {"value": None}, "kernel.arguments.0.fields.4", "needs a value, or values"),
        ("scale", {"align": 3}, "kernel.arguments.0.fields.5.align", "3 is no power of two"),
        ("scale", {"fields": []}, "", ""),
        ("shift", {"count": 3}, "kernel.arguments.0.fields.6.values", "2 are no multiple of the count"),
        ("shift", {"valeus": 3}, "kernel.arguments.0.fields.6.valeus", "did you mean 'values'?"),
    ],
)
def test_a_mistake_in_a_struct_names_its_field(name: str, fields: Fields, field: str, words: str) -> None:
    if not field:
        fields_with(name, **fields)
        return
    found = problem(fields_with, name, **fields)
    assert found[0] == field
    assert words in found[1]


@pytest.mark.parametrize(
    ("name", "fields", "field", "words"),
    [
        ("bias", {"shape": ["n"]}, "kernel.arguments.5", "pointer bias needs the buffer that it leads to"),
        ("bias", {"dtype": "float32"}, "kernel.arguments.5.dtype", "pointer bias has none; leave it out"),
        ("w", {"value": 1}, "kernel.arguments.3", "needs a value, or values for the lanes"),
        ("w", {"draw": {}}, "kernel.arguments.3", "scalar w is not drawn"),
        ("tables", {"shape": [3]}, "kernel.arguments.2.to", "is 3, and tables lists 2 buffers"),
        ("tables", {"shape": None}, "kernel.arguments.2", "array tables needs a shape (the number"),
        ("places", {"step": "2 * n"}, "kernel.arguments.6.offset", "is 20000, and rows has 15000 elements"),
        ("y", {"to": "x"}, "kernel.arguments.7", "output y has no to, fields or type"),
        ("y", {"name": "x"}, "kernel.buffers.0.name", "argument x is declared twice"),
        (
            "rows",
            {"role": "pointer", "shape": None, "dtype": None},
            "kernel.arguments.2.to",
            "no buffer 'rows'",
        ),
        ("rows", {"name": "other"}, "kernel.arguments.2.to", "declared are narrow, other, places, seen"),
    ],
)
def test_a_mistake_in_an_argument_names_its_field(name: str, fields: Fields, field: str, words: str) -> None:
    found = problem(changed, name, **fields)
    assert found[0] == field
    assert words in found[1]


def test_a_buffer_that_nothing_leads_to_is_refused() -> None:
    extra = {"name": "lost", "dtype": "int8", "role": "input", "shape": [1]}
    found = problem(every_kind, buffers=[*BUFFERS, extra])
    assert found == ("kernel.buffers.3.name", "nothing leads to lost")


def test_opencl_passes_no_addresses_in_values() -> None:
    text = scale_job().kernel.model_dump(mode="json")
    pointed = {"name": "s", "role": "struct", "fields": [{"name": "x", "role": "pointer", "to": "x"}]}
    for argument, field in (
        (pointed, "kernel.arguments.3.fields.0.to"),
        ({"name": "s", "role": "pointers", "shape": [1], "to": "x"}, "kernel.arguments.3.role"),
    ):
        found = problem(scale_job, kernel=text | {"arguments": [*text["arguments"], argument]})
        assert found[0] == field
        assert "OpenCL passes a buffer only as an argument" in found[1]


def test_one_workload_as_numbers_and_back_from_a_message() -> None:
    job = every_kind()
    plan = plan_workload(job.kernel, Workload(dimensions={"n": 64, "d": 5}), {}, seed=1)
    assert plan_from_json(plan_to_json(plan)) == plan
    p, none, tables, w, _, bias, places, *_ = plan.arguments
    assert isinstance(p, ValuePlan)
    assert isinstance(w, ValuePlan)
    assert p.addresses == ((0, Address("x")), (8, Address("seen")), (16, Address(None)))
    assert given_values(p) == {
        "head": (2**32 * 3 // 5 + 1, 3, 5),
        "range": {"low": -0.5, "high": 0.5},
        "more": 1,
        "scale": 1.5,
        "shift": (0.0, 0.064),
    }
    assert given_values(w) == (1.0, 2.0, 0.25, 4.0)
    assert none == ValuePlan("none", 1, 1, ())
    assert bias == PointerPlan("bias", Address(None))
    assert tables == TablePlan("tables", (Address("x"), Address("rows")))
    assert places == TablePlan("places", tuple(Address("rows", 4 * 64 * n) for n in range(3)))
    assert [b.name for b in plan.buffers] == ["narrow", "y", "x", "rows", "seen"]
    assert [b.name for b in plan.mutated] == ["y", "seen"]
    assert set(buffer_bytes(job, job.workloads[0])) == {b.name for b in plan.buffers}


def test_a_neighbouring_shape_at_which_an_address_leaves_its_buffer_makes_no_sense() -> None:
    job = changed("places", step="5000")
    with pytest.raises(ExpressionError, match="is 10000, and rows has 9000 elements"):
        plan_workload(job.kernel, Workload(dimensions={"n": 3000, "d": 7}), {}, seed=1)


def test_numbers_fill_their_type_and_no_more() -> None:
    for dtype in (d for d in Dtype if not d.is_float and d is not Dtype.UINT64):
        bits = 1 if dtype is Dtype.BOOL else 8 * dtype.size_bytes - (dtype.value[0] == "i")
        top = 2**bits - 1
        assert number(Expression(top), dtype, {}) == top
        with pytest.raises(ExpressionError):
            number(Expression(top + 1), dtype, {})


def test_a_type_follows_from_a_role_and_is_not_asked_for() -> None:
    given = {"name": "p", "role": "pointer", "to": "x"}
    argument = Argument.model_validate(given)
    assert (argument.role, argument.dtype) == (Role.POINTER, Dtype.UINT64)
    assert Argument.model_validate(argument.model_dump()) == argument
    assert "dtype" not in Argument.model_json_schema()["required"]
    with pytest.raises(ValidationError, match="dtype"):
        Argument.model_validate({"name": "x", "role": "input", "shape": [1]})


def test_rules_that_move_accesses_decline_where_two_arguments_meet_in_a_written_buffer() -> None:
    source = """
extern "C" __global__ void f(const float* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];
}
"""
    y = {"name": "y", "dtype": "float32", "role": "inout", "shape": ["n"]}
    n = {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"}

    def rules(x: dict[str, Any]) -> set[str]:
        job = every_kind(source=source, arguments=[x, y, n], buffers=[], launch={"grid": [1], "block": [128]})
        return {a.rule for a in make_template(job).template.applied}

    apart = rules({"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]})
    met = rules({"name": "x", "role": "pointer", "to": "y"})
    assert {"vector_width", "restrict"} <= apart
    assert met <= {"lift_constants", "block_size", "unroll", "launch_bounds", "fast_math"}
    assert met
