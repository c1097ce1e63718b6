"""The rules as tuner: limits of the device and reports of the compiler as bounds, and where to begin."""

from dataclasses import replace
from typing import Any

import pytest

from agents.context import StepContext
from agents.providers.steps import run_step
from agents.rules.provider import RulesProvider
from agents.rules.search_region import region
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.candidates import CandidateRepository
from testbed.example_jobs import load_example
from testbed.replay import replay
from tests.agents.test_requests import state_of, worker
from tests.unit.tuning.test_search_facts import measured
from tests.worker.test_execute import handle_all, submit
from warpsmith.domain.jobs.job import Job, Strategy
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.outcome import CompileFacts, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import BaselineResult, StepPayload, StepResult
from worker.device.process_context import Context

__all__ = ["worker"]

BLOCKS = [64, 256, 1024, 2048]
SEARCHED = [64, 96, 128, 160, 192, 224, 256, 512]
H200 = DEVICE.model_copy(update={"architecture": "sm_90"})


def job_of(blocks: list[int], body: str = "", **changes: Any) -> Job:
    """`scale_job` with these blocks, and something more in its kernel."""
    job = scale_job(
        parameters=[{"name": "BLOCK", "values": blocks}, {"name": "PER", "values": [1, 2, 4]}], **changes
    )
    text = job.kernel.text.replace("{\n", "{\n" + body, 1)
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": text})})


def known(job: Job, compiled: CompileFacts = CompileFacts()) -> StepContext:
    """What the tuner knows of a job on an NVIDIA device."""
    return StepContext(job=job, baseline=BaselineResult(device=H200, facts=compiled))


def draft(job: Job) -> Template:
    """The kernel with the user's own tunables."""
    return Template(kernel=job.kernel, space=job.space)


def bounds(context: StepContext, of: Template | None = None) -> list[str]:
    """The constraints that are proposed."""
    return [c.expression for c in region(of or draft(context.job), context).constraints]


def starts(context: StepContext, of: Template | None = None) -> list[Configuration]:
    """The first configurations that are proposed."""
    said = region(of or draft(context.job), context)
    return [{v.name: v.value for v in values} for values in said.warm_starts]


REFUSED = DeclinedRule(rule="a", code=DeclineCode.FORM, reason="b")


def tuned(context: StepContext, of: Template) -> StepResult:
    payload = StepPayload(role="tuner", round=1, draft=of, declined=(REFUSED,))
    return RulesProvider().answer(payload, context)


def test_a_block_that_the_device_does_not_take_is_bounded_once() -> None:
    context = known(job_of(BLOCKS))
    made = tuned(context, draft(context.job))
    assert made.template is not None
    assert made.declined == (REFUSED,)
    (constraint,) = made.template.space.constraints
    assert constraint.expression.text == "(BLOCK) <= device.max_threads_per_block"
    assert constraint.expression.text in made.reply, "the record does not show what was said"
    assert bounds(context, made.template) == []
    assert bounds(known(job_of([64, 256, 1024]))) == [], "no block is too large"


def test_what_dimensions_make_too_large_is_bounded() -> None:
    job = job_of([64])
    launch = {"grid": [1, "n * PER"], "block": [64], "shared_bytes": "n * 8 * PER"}
    data = job.model_dump(mode="json") | {"workloads": [{"dimensions": {"n": 4096}}]}
    data["kernel"]["launch"] = launch
    assert bounds(known(Job.model_validate(data))) == ["n * 8 * PER <= device.max_shared_per_block"]
    data["workloads"] = [{"dimensions": {"n": 40_000}}]
    data["kernel"]["launch"] = launch | {"shared_bytes": 0}
    assert bounds(known(Job.model_validate(data))) == ["n * PER <= device.max_grid_y"]


def test_an_array_in_shared_memory_is_bounded_where_its_size_is_plain() -> None:
    tile = "  __local float4 tile[BLOCK][PER + 2]; // __local double more[BLOCK][99]\n"
    expected = ["16 * (BLOCK) * (PER + 2) <= device.max_shared_per_block"]
    assert bounds(known(job_of([64, 1024], tile))) == expected
    assert bounds(known(job_of([64, 1024], tile.replace("PER + 2", "WIDTH")))) == []
    assert bounds(known(job_of([64, 1024], f"#if PER > 1\n{tile}#endif\n"))) == []


def test_registers_that_the_compiler_reports_bound_a_block() -> None:
    compiled = CompileFacts(registers=80)
    assert bounds(known(job_of([64, 512, 1024]), compiled)) == ["(BLOCK) * 80 <= device.registers_per_block"]
    limited = job_of([64, 512, 1024], "// __launch_bounds__(BLOCK)\n")
    assert bounds(known(limited, compiled)) == [], "the compiler keeps to launch bounds"


def test_what_always_spilled_or_never_worked_is_left_out() -> None:
    context = searched(lambda c: c["PER"] == 2)
    assert bounds(context) == ["PER != 2"]
    assert bounds(searched(lambda c: True)) == [], "nothing is learned where all of them spill"
    assert bounds(searched(lambda c: c["BLOCK"] == 256)) == [], "the best has that value"
    broken = searched(lambda c: False, fails=lambda c: c["PER"] == 2)
    assert bounds(broken) == ["PER != 2"]
    other = job_of(SEARCHED, "\n\n")
    assert bounds(broken, draft(other)) == [], "of another source nothing is known"


def searched(spills: Any, fails: Any = lambda c: False) -> StepContext:
    """A job whose parent was searched; blocks of 256 were the fastest."""
    job = job_of(SEARCHED)
    trials: list[tuple[Configuration, Outcome]] = []
    for block in SEARCHED:
        for per in (1, 2, 4):
            c: Configuration = {"BLOCK": block, "PER": per}
            facts = CompileFacts(registers=32, spill_bytes=8 if spills(c) else 0)
            good = measured(0.5 if block == 256 else 0.9, facts=facts)
            trials.append((c, Rejected(stage=Stage.RUN, reason="it hangs") if fails(c) else good))
    return replace(known(job), parent=draft(job), trials=trials)


def test_the_search_begins_with_the_parent_s_best() -> None:
    assert starts(searched(lambda c: False))[0] == {"BLOCK": 256, "PER": 1}


def test_a_small_kernel_begins_with_blocks_for_the_whole_device() -> None:
    job = job_of([1024, 512, 256, 128, 64, 32], workloads=[{"dimensions": {"n": 4096}}])
    many = H200.model_copy(update={"limits": H200.limits.model_copy(update={"multiprocessors": 64})})
    context = StepContext(job=job, baseline=BaselineResult(device=many))
    assert starts(context) == [{"BLOCK": 64, "PER": 1}]
    assert starts(StepContext(job=job, baseline=BaselineResult(device=DEVICE))) == [{"BLOCK": 256, "PER": 1}]


def test_a_template_of_the_rules_on_an_ordinary_device_needs_no_more() -> None:
    context = StepContext(job=load_example("silu_and_mul", "opencl"), baseline=BaselineResult(device=DEVICE))
    made = run_step(StepPayload(role="templater", round=1), context)
    assert made.template is not None
    assert (bounds(context, made.template), starts(context, made.template)) == ([], [])
    assert not made.ask_tuner


@pytest.mark.parametrize(
    ("strategy", "asked"), [(Strategy.TEMPLATE, True), (Strategy.SEARCH, False), (Strategy.DIRECT, False)]
)
def test_the_tuner_is_asked_where_the_rules_have_something_to_say(strategy: Strategy, asked: bool) -> None:
    job = job_of(BLOCKS, rewrite={"enabled": False}, strategy=strategy)
    made = run_step(StepPayload(role="templater", round=1), known(job))
    assert made.ask_tuner is asked


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_job_of_the_rules_takes_every_step_of_the_loop(worker: Context) -> None:
    job = job_of(BLOCKS, rewrite={"enabled": False}, budget={"trials": 12, "seconds": 600, "rounds": 2})
    name = submit(worker.database, job)
    handle_all(worker)
    assert state_of(worker.database, name) is JobState.DONE
    with worker.database.read() as session:
        steps = AgentStepRepository(session).of_job(name)
        first = CandidateRepository(session).of_job(name, with_templates=True)[0]
        found = replay(session, name, {})
    assert [s.role for s in steps[:5]] == ["tester", "profiler", "planner", "templater", "tuner"]
    assert {s.provider for s in steps} == {"rules"}
    assert [c.expression.text for c in first.template.space.constraints] == [
        "(BLOCK) <= device.max_threads_per_block"
    ]
    assert (found.differences, found.steps) == ((), len(steps))
