"""Fields in a wrong place, and values that fit no member of a union: one line each."""

from typing import Any

import pytest

from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.job_files.form_places import places_of_form
from warpsmith.job_files.jobfile import parse_job
from warpsmith.testing.jobs import scale_job

FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)

BELONGS_TO_LAUNCHES = "no such field here; belongs under kernel.launch or under kernel.launches.launch"


def changed(place: str, value: object) -> dict[str, Any]:
    """The fields of a job with a value at a place."""
    job = scale_job().model_dump(mode="json", exclude_unset=True)
    at: Any = job
    *around, last = (int(p) if p.isdecimal() else p for p in place.split("."))
    for part in around:
        at = at[part] if isinstance(part, int) else at.setdefault(part, {})
    at[last] = value
    return job


def refused(place: str, value: object) -> str:
    """Messages on a job with a value at a place."""
    with pytest.raises(InvalidInput) as caught:
        parse_job(changed(place, value))
    return str(caught.value)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("trials", "no such field here; belongs under budget"),
        ("kernel.grid", BELONGS_TO_LAUNCHES),
        ("kernel.budget", "no such field here; belongs at the top level"),
        ("dimensions", "no such field here; belongs under workloads or under known_winners"),
        (
            "kernel.dtype",
            "no such field here; belongs under kernel.arguments or under kernel.buffers or under "
            "kernel.arguments.fields",
        ),
        ("rtol", "no such field here; belongs under tolerances.NAME"),
        ("budget.function", "no such field here; belongs under reference (kind: numpy)"),
        (
            "kernel.arguments.0.distribution",
            "no such field here; belongs under kernel.arguments.draw or under kernel.buffers.draw",
        ),
        (
            "parameters.0.block",
            f"{BELONGS_TO_LAUNCHES} or under kernel.arguments.draw.routing",
        ),
        ("trails", "no such field; did you mean 'trials' under budget?"),
        ("TRIALS", "no such field; did you mean 'trials' under budget?"),
        ("kernel.workload", "no such field; did you mean 'workloads' at the top level?"),
        ("budget.trails", "no such field; did you mean 'trials'?"),
        ("parameters.0.value", "no such field; did you mean 'values'?"),
        ("zzzzzz", "no such field"),
    ],
)
def test_a_misplaced_field_has_its_place_named(place: str, words: str) -> None:
    assert refused(place, 5) == f"{place}: {words}"


def test_no_proposal_is_the_refused_word() -> None:
    form = places_of_form(Job)
    for around in ((), ("kernel",), ("budget",), ("kernel", "launch"), ("kernel", "arguments", 0)):
        for name in set(form.names()) - set(form.fields_at(around)):
            place = ".".join(map(str, (*around, name)))
            said = refused(place, 5).split("\n")[0]
            assert said.startswith(f"{place}: no such field"), said
            assert f"did you mean '{name}'" not in said
            assert "belongs " in said or "did you mean " in said


def test_a_field_that_is_missing_where_another_belongs_is_said_once() -> None:
    kernel = {k: v for k, v in FIELDS["kernel"].items() if k != "entry"}
    kernel["launch"] = kernel["launch"] | {"entry": "scale"}
    with pytest.raises(InvalidInput) as caught:
        parse_job(FIELDS | {"kernel": kernel})
    assert str(caught.value).startswith("kernel.launch.entry: no such field here; belongs under kernel or ")
    assert "\n" not in str(caught.value)


WORD = "must be true or false, a number, or one word of letters, digits and _"


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("parameters.0.values", [64, "unsigned int"], f"parameters.0.values.1: {WORD} (was 'unsigned int')"),
        ("parameters.0.values", [64, ""], f"parameters.0.values.1: {WORD} (was '')"),
        ("parameters.0.values", [64, None], f"parameters.0.values.1: {WORD} (was None)"),
        ("parameters.0.values", [64, [128]], f"parameters.0.values.1: {WORD} (was [128])"),
        ("parameters.0.values", [64, "x" * 100], f"parameters.0.values.1: {WORD}"),
        ("parameters.0.default", "64 ", f"parameters.0.default: {WORD} (was '64 ')"),
        (
            "kernel.arguments.0.to",
            7,
            "kernel.arguments.0.to: must be one word of letters, digits and _ or a list (was 7)",
        ),
    ],
)
def test_a_value_that_fits_no_member_of_a_union_has_one_line(place: str, value: object, words: str) -> None:
    assert refused(place, value) == words


def test_what_is_wrong_inside_of_the_member_that_is_meant_is_said() -> None:
    assert refused("kernel.arguments.0.to", ["a", 1]).startswith("kernel.arguments.0.to.1: ")
    draw = {"distribution": "uniform", "low": "n +", "high": 1}
    said = "kernel.arguments.0.draw.low: in expression 'n +': is not a valid expression"
    assert refused("kernel.arguments.0.draw", draw) == said
