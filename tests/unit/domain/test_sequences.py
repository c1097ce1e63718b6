"""Sequences of launches in the job form, as numbers, and in what is said of a wrong one."""

from typing import Any

import pytest

from tests.sequence_jobs import changed, row_sums
from warpsmith.backends.base import LocalSlot, launches_of
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import evaluated
from warpsmith.domain.jobs.memory import all_bytes
from warpsmith.domain.templates.outcome import CompileFacts, joined_facts
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput
from warpsmith.job_checks.all_findings import known_findings
from warpsmith.job_files.jobfile import parse_job
from warpsmith.sandbox.transport.messages import size_from_json, size_to_json
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.session.launch_limits import beyond_limits

FIRST = {"entry": "partials", "arguments": ["x", "partial", "columns"]}
SECOND = {"entry": "merge", "arguments": ["partial", "y", "rows"]}
LAUNCH = {"grid": ["rows"], "block": [64]}


def launches(first: dict[str, Any] | None = None, second: dict[str, Any] | None = None) -> dict[str, Any]:
    """The example's launches with other fields."""
    return {
        "launches": [
            {**FIRST, "launch": LAUNCH, **(first or {})},
            {**SECOND, "launch": LAUNCH, **(second or {})},
        ]
    }


def with_role(name: str, **fields: Any) -> dict[str, Any]:
    """The example's arguments with other fields of one."""
    arguments = changed()["kernel"]["arguments"]
    return {"arguments": [a | fields if a["name"] == name else a for a in arguments]}


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (
            launches({"arguments": ["x", "partil", "columns"]}),
            "kernel.launches.0.arguments.1: no argument 'partil'",
        ),
        (launches({"arguments": ["x", "partial", "x"]}), "kernel.launches.0.arguments.2: x is listed twice"),
        (
            launches({"arguments": ["x", "partial"]}),
            "kernel.arguments.3.name: no launch takes columns; remove it",
        ),
        (
            launches({"arguments": ["x", "columns"]}),
            "kernel.arguments.1.role: only launch 1 takes partial; scratch is written by one launch",
        ),
        (
            launches({"launch": LAUNCH | {"cooperative": True}}),
            "kernel.launches.0.launch.cooperative: not possible",
        ),
        (
            launches({}, {"launch": LAUNCH | {"cluster": [2]}}),
            "kernel.launches.1.launch.cluster: not possible",
        ),
        (
            launches({}, {"launch": {"grid": ["rws"], "block": [1]}}),
            "kernel.launches.1.launch.grid.0: in expression",
        ),
        (launches({"entry": ""}), "kernel.launches.0.entry: String should have at least 1 character"),
        (
            {"launches": launches()["launches"][:1]},
            "kernel.launches: one launch is no sequence; use entry and launch",
        ),
        (
            {"entry": "merge"},
            "kernel.entry: is 'merge', and the first of launches has 'partials'; leave entry out",
        ),
        ({"launch": LAUNCH | {"block": [32]}}, "kernel.launch: differs from that of the first of launches"),
        ({"launches": None}, "kernel.entry: is missing"),
        (
            {"launches": None, "entry": "partials", "launch": LAUNCH},
            "kernel.arguments.1.role: partial is scratch, which lies between launches; list them as launches",
        ),
        (with_role("partial", draw={"distribution": "normal"}), "scratch partial is not drawn; remove draw"),
        (
            with_role("partial", shape=["rows", "SPLITS - 2"]),
            "kernel.arguments.1.shape.1: 'SPLITS - 2' is 0, below 1",
        ),
        (with_role("y", role="input"), "kernel.arguments: none has role output or inout"),
    ],
)
def test_a_wrong_form_is_refused_with_its_field(kernel: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_job(changed(**kernel))
    assert words in str(caught.value)


@pytest.mark.parametrize("objective", [{"energy": True}, {"metric": "energy"}])
def test_the_energy_of_a_sequence_is_refused(objective: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"objective.*the energy of a sequence is not measured yet; use"):
        parse_job(changed() | {"objective": objective})


def test_a_recording_has_no_sequence() -> None:
    job = parse_job(changed(backend="replay") | {"rewrite": {"enabled": False}})
    fields = {f.field: f.message for f in known_findings(job, Settings())}
    assert "kernel.launches" in fields


def test_the_form_survives_its_own_json() -> None:
    job = parse_job(changed())
    assert Job.model_validate_json(job.model_dump_json()) == job
    assert job.kernel.entry == "partials"


def test_a_kernel_with_one_launch_keeps_its_name() -> None:
    """The names of stored kernels must not change with the form."""
    job = scale_job()
    text = (
        Template(kernel=job.kernel)
        .configured({})
        .model_dump_json(exclude={"configuration": True, "expected_launch": True})
    )
    assert '"launches":[]' in text
    (step,) = job.kernel.steps
    assert (step.entry, step.launch) == (job.kernel.entry, job.kernel.launch)
    assert job.kernel.of_step(0) is job.kernel


@pytest.mark.parametrize("backend", [Backend.OPENCL, Backend.CUDA])
def test_nothing_is_found_wrong_with_the_example(backend: Backend) -> None:
    assert list(known_findings(row_sums(backend), Settings())) == []


@pytest.mark.parametrize(
    ("kernel", "field", "words"),
    [
        (launches({"entry": "partial_sums"}), "kernel.launches.0.entry", "no kernel 'partial_sums'"),
        (
            launches({}, {"arguments": ["y", "partial", "rows"]}),
            "kernel.launches.1.arguments.0",
            "stands at place 1",
        ),
        (
            launches({"arguments": ["x", "partial", "columns", "rows"]}),
            "kernel.launches.0.arguments.3",
            "lists 4",
        ),
        (
            launches({}, {"launch": LAUNCH | {"block": [4096]}}),
            "kernel.launches.1.launch.block.0",
            "block x is 4096",
        ),
        (with_role("partial", dtype="float64"), "kernel.arguments.1.dtype", "partial is float64 here"),
        (
            {"launches": [launches()["launches"][1], launches()["launches"][0]]},
            "kernel.arguments.1.role",
            "merge reads partial before any launch has written it",
        ),
    ],
)
def test_a_launch_that_is_not_as_its_function_is_found_out(
    kernel: dict[str, Any], field: str, words: str
) -> None:
    device = DEVICE.model_copy(update={"backend": Backend.OPENCL})
    found = {f.field: f.message for f in known_findings(parse_job(changed(**kernel)), Settings(), [device])}
    assert words in found.get(field, str(found))
    assert field in found


def test_a_sequence_in_numbers() -> None:
    job = row_sums()
    size = evaluated(job.kernel, {"rows": 16, "columns": 4096, "SPLITS": 8})
    assert [s.grid for s in size.steps] == [(16, 8, 1), (1, 1, 1)]
    assert [s.takes for s in size.steps] == [(0, 1, 3), (1, 2, 4)]
    assert size.scratch_bytes == (16 * 8 * 4,)
    assert size_from_json(size_to_json(size)) == size


def test_each_launch_takes_its_own_arguments_and_counts_its_own_local_ones() -> None:
    size = evaluated(row_sums().kernel, {"rows": 16, "columns": 4096, "SPLITS": 8})
    bound: list[Any] = ["x", LocalSlot(0), "y", "columns", LocalSlot(1)]
    assert [(n, a) for n, a, _ in launches_of(bound, size)] == [
        (0, ["x", LocalSlot(0), "columns"]),
        (1, [LocalSlot(0), "y", LocalSlot(1)]),
    ]


@pytest.mark.parametrize(
    ("splits", "words"),
    [(8, ""), (2_000_000_000, "launch 0: grid y is 2000000000"), (0, "launch 0: grid y is 0")],
)
def test_limits_hold_for_every_launch(splits: int, words: str) -> None:
    limits = DEVICE.limits.model_copy(update={"max_grid_y": 65535})
    size = evaluated(row_sums().kernel, {"rows": 16, "columns": 4096, "SPLITS": splits})
    assert words in beyond_limits(size, limits)
    assert bool(beyond_limits(size, limits)) == bool(words)


def test_scratch_beyond_the_memory_is_refused() -> None:
    limits = DEVICE.limits.model_copy(update={"total_memory_bytes": 1000})
    size = evaluated(row_sums().kernel, {"rows": 16, "columns": 4096, "SPLITS": 32})
    assert "2048 B of scratch; the device has 1000" in beyond_limits(size, limits)


def test_scratch_is_counted_once_and_never_drawn_or_expected() -> None:
    job = row_sums()
    first = job.model_copy(update={"workloads": job.workloads[:1]})
    assert all_bytes(first).process == 4 * (16 * 4096 + 16 + 16 * 2)


def test_the_entries_of_a_template_get_their_values() -> None:
    data = changed()
    data["kernel"]["launches"][1]["entry"] = "merge<SPLITS>"
    configured = Template(kernel=parse_job(data).kernel, space=parse_job(data).space).configured(
        {"SPLITS": 8}
    )
    assert [s.entry for s in configured.kernel.steps] == ["partials", "merge<8>"]


def test_the_facts_of_a_sequence_are_the_most_of_its_kernels() -> None:
    facts = joined_facts(
        [CompileFacts(registers=40, spill_bytes=8), CompileFacts(registers=32, spill_bytes=4)]
    )
    assert facts == CompileFacts(registers=40, spill_bytes=12)
    assert joined_facts([CompileFacts(), CompileFacts()]) == CompileFacts()
