"""The rules in every role, from facts alone; and the two strategies that leave a half out."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from agents.context import StepContext
from agents.providers.steps import provider_name
from agents.questions.role_inputs import question
from agents.rules.conclusions import narrowed, profile
from agents.rules.conclusions import test_plan as plan_of_tests
from agents.rules.provider import RulesProvider
from testbed.example_jobs import load_example
from tests.unit.tuning.test_decide import timed_baseline
from tests.unit.tuning.test_search_facts import measured
from warpsmith.domain.jobs.job import AgentPolicy, Job, Strategy, Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.outcome import CompileFacts, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration, Parameter, Space
from warpsmith.domain.templates.template import Template
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.analysis.search_facts import facts_of
from warpsmith.tuning.tasks import BaselineResult, CheckedCase, StepPayload, StepResult

RULES = RulesProvider()


def answer(context: StepContext, role: str, **payload: object) -> StepResult:
    return RULES.answer(StepPayload.model_validate({"role": role, "round": 1} | payload), context)


def test_the_test_plan_stands_around_the_kernel_s_own_block() -> None:
    job = load_example("silu_and_mul", "opencl")
    context = StepContext(job=job, baseline=BaselineResult(device=DEVICE))
    cases = plan_of_tests(context)
    smallest = {"tokens": 17, "hidden": 1531}
    shapes = [c.dimensions for c in cases if c.family is Family.DECLARED]
    assert shapes[:3] == [
        {"tokens": 18, "hidden": 1532},
        smallest | {"hidden": 65},
        smallest | {"hidden": 63},
    ]
    assert [(c.dimensions, c.family) for c in cases if c.family is not Family.DECLARED] == [
        ({"tokens": 256, "hidden": 2048}, Family.SPIKE),
        ({"tokens": 256, "hidden": 2048}, Family.SCALED_UP),
    ]
    assert all(c.reason for c in cases)


def test_nothing_is_asked_for_twice() -> None:
    job = load_example("silu_and_mul", "opencl")
    first = plan_of_tests(StepContext(job=job, baseline=BaselineResult(device=DEVICE)))
    known = tuple(CheckedCase(dimensions=c.dimensions, family=c.family) for c in first)
    again = plan_of_tests(StepContext(job=job, baseline=BaselineResult(device=DEVICE, cases=known)))
    asked = {(Workload(dimensions=c.dimensions).key, c.family) for c in first}
    assert not asked & {(Workload(dimensions=c.dimensions).key, c.family) for c in again}


def scale_context(
    us: float,
    compiled: CompileFacts = CompileFacts(),
    launch_us: float = 1.0,
    operations: str | None = None,
    small_us: float | None = None,
) -> StepContext:
    """A baseline of `us` for both workloads, or of `small_us` for the smaller one."""
    baseline = timed_baseline(us)
    if small_us is not None:
        timings = (baseline.timings[0], timed_baseline(small_us).timings[1])
        baseline = baseline.model_copy(update={"timings": timings})
    job = scale_job() if operations is None else scale_job(operations=operations)
    assert baseline.ceilings is not None
    ceilings = baseline.ceilings.model_copy(update={"launch_us": launch_us})
    device = DEVICE.model_copy(update={"architecture": "sm_90"})
    changes = {"facts": compiled, "ceilings": ceilings, "device": device}
    return StepContext(job=job, baseline=baseline.model_copy(update=changes))


@pytest.mark.parametrize(
    ("context", "bottleneck"),
    [
        (scale_context(34.0, CompileFacts(registers=32, spill_bytes=16)), "spills"),
        (scale_context(12.0, launch_us=10.0), "launch"),
        (scale_context(34.0, small_us=8.5), "memory"),
        (scale_context(100.0, CompileFacts(registers=255)), "occupancy"),
        (scale_context(100.0, CompileFacts(registers=32)), "latency"),
        (scale_context(100.0, operations="60000000 + 0 * n"), "arithmetic"),
        (StepContext(job=scale_job(), baseline=BaselineResult(device=DEVICE)), "unknown"),
    ],
    ids=["spills", "launch", "memory", "occupancy", "latency", "arithmetic", "unknown"],
)
def test_the_bottleneck_follows_from_the_facts(context: StepContext, bottleneck: str) -> None:
    found = profile(context)
    assert found.bottleneck == bottleneck
    assert bool(found.hypotheses) is (bottleneck != "unknown")


def searched(
    objective: Callable[[Mapping[str, int]], float],
    fails: Callable[[Mapping[str, int]], bool] = lambda c: False,
) -> StepContext:
    """A finished search of every configuration of `scale_job`."""
    context = scale_context(100.0)
    job = context.job
    seen: list[tuple[Configuration, Outcome]] = []
    for block in (32, 64, 128, 256):
        for per in (1, 2, 4, 8):
            c = {"BLOCK": block, "PER": per}
            bad = Rejected(stage=Stage.LAUNCH, reason="too many registers")
            seen.append((dict(c), bad if fails(c) else measured(objective(c))))
    return replace(context, parent=Template(kernel=job.kernel, space=job.space), trials=seen)


def test_the_profile_names_the_parameter_that_matters() -> None:
    found = profile(searched(lambda c: 64 / c["BLOCK"]))
    assert any("BLOCK explains 100%" in h and "best value 256" in h for h in found.hypotheses)


@pytest.mark.parametrize(("step", "gain"), [(2.0, 2.0), (1.001, 1.001)])
def test_the_planner_expects_what_the_last_doubling_brought(step: float, gain: float) -> None:
    powers = {32: 0, 64: 1, 128: 2, 256: 3}
    result = answer(searched(lambda c: step ** -powers[c["BLOCK"]] * c["PER"]), "planner", round=2)
    assert result.plan == '{"extend": {"BLOCK": [512, 1024]}}'
    assert result.expected_gain == pytest.approx(gain, rel=1e-3)


def test_values_that_never_worked_are_left_out_of_the_next_round() -> None:
    context = searched(lambda c: 64 / c["BLOCK"], fails=lambda c: c["PER"] == 8)
    plan = answer(context, "planner", round=2).plan
    made = answer(context, "templater", round=2, plan=plan).template
    assert made is not None
    (constraint,) = made.space.constraints
    assert constraint.expression.text == "PER != 8"
    assert constraint.reason == "4 of 4 configurations with it were rejected"


def test_a_default_is_never_left_out() -> None:
    context = searched(lambda c: 1.0, fails=lambda c: c["PER"] == 1)
    assert context.parent is not None and context.baseline is not None
    facts = facts_of(context.job, context.baseline, context.parent, context.trials)
    assert narrowed(context.parent.space, facts).constraints == ()
    odd = Space(parameters=(Parameter(name="PER", values=(True, "x")),))
    assert narrowed(odd, facts).constraints == ()


def test_a_template_of_the_rules_starts_with_what_is_usual() -> None:
    context = StepContext(job=load_example("silu_and_mul", "opencl"), baseline=BaselineResult(device=DEVICE))
    made = answer(context, "templater").template
    assert made is not None
    (first,) = made.warm_starts
    assert (first["WS_BLOCK"], first["WS_VEC"], first["WS_FAST_MATH"]) == (256, 4, 1)


def with_strategy(strategy: Strategy) -> StepContext:
    job = load_example("silu_and_mul", "opencl").model_copy(update={"strategy": strategy})
    return StepContext(job=job, baseline=BaselineResult(device=DEVICE))


def test_rules_that_rewrite_add_one_each_round_and_leave_no_choice() -> None:
    context = with_strategy(Strategy.DIRECT)
    applied: list[list[str]] = []
    for round_ in range(1, 8):
        plan = answer(context, "planner", round=round_).plan
        made = answer(context, "templater", round=round_, plan=plan).template
        assert made is not None
        assert all(len(p.values) == 1 for p in made.space.parameters)
        applied.append([a.rule for a in made.applied])
        context = replace(context, parent=made)
    order = ["block_size", "row_split", "vector_width", "unroll", "launch_bounds", "restrict", "fast_math"]
    assert applied == [order[:n] for n in range(1, 8)]
    assert answer(context, "templater", round=8).stop == "every rule has been tried"
    assert answer(context, "repairer", round=3, attempt=1).template is None


def test_a_rule_that_did_not_help_is_not_taken_along() -> None:
    context = with_strategy(Strategy.DIRECT)
    first = answer(context, "templater", round=1).template
    third = answer(replace(context, parent=first), "templater", round=3).template
    assert third is not None
    assert [a.rule for a in third.applied] == ["block_size", "vector_width"]


def test_a_search_without_agents_lifts_constants_and_asks_nobody() -> None:
    job = load_example("matmul", "opencl").model_copy(update={"strategy": Strategy.SEARCH})
    made = answer(StepContext(job=job), "templater").template
    assert made is not None
    assert [a.rule for a in made.applied] == ["lift_constants"]
    nothing = answer(with_strategy(Strategy.SEARCH), "templater").template
    assert nothing is not None
    assert nothing.space.parameters == ()
    settings = Settings(_env_file=None, agent_provider="external")
    asked = Job.model_validate(job.model_dump() | {"agents": AgentPolicy(provider="openai")})
    assert provider_name(asked, settings, "templater") == "rules"


def test_the_job_chooses_before_the_operator_and_a_role_before_all() -> None:
    job = load_example("matmul", "opencl")
    settings = Settings(
        _env_file=None, agent_provider="external", agent_providers="templater=openai, profiler=rules"
    )
    names = {role: provider_name(job, settings, role) for role in ("templater", "profiler", "planner")}
    assert names == {"templater": "openai", "profiler": "rules", "planner": "external"}
    policy = AgentPolicy(provider="rules", roles={"profiler": "openai"})
    chosen = job.model_copy(update={"agents": policy})
    assert provider_name(chosen, settings, "templater") == "rules"
    assert provider_name(chosen, settings, "profiler") == "openai"


@pytest.mark.parametrize("wrong", ["templater", "cook=rules", "templater=nobody"])
def test_a_provider_for_a_role_is_one_that_there_is(wrong: str) -> None:
    with pytest.raises(ValueError, match="role=provider"):
        Settings(_env_file=None, agent_providers=wrong)


def test_facts_and_profile_reach_whoever_is_asked() -> None:
    context = searched(lambda c: 64 / c["BLOCK"])
    found = profile(context)
    payload = StepPayload(role="planner", round=2, profile=found)
    data = question(payload, context).model_dump()
    assert data["profile"]["bottleneck"] == found.bottleneck
    assert data["facts"]["effects"][0]["parameter"] == "BLOCK"
    assert data["facts"]["best"]["configuration"] == {"BLOCK": 256, "PER": 1}


def test_rules_at_fault_are_left_out_and_the_others_kept() -> None:
    context = StepContext(job=load_example("silu_and_mul", "opencl"))
    before = answer(context, "templater").template
    fault = {"rule": "restrict", "stage": "compile", "reason": "kernel.cl:3: error: restrictx\nmore"}
    mended = answer(context, "repairer", faults=[fault])
    assert before is not None and mended.template is not None
    rules = [a.rule for a in before.applied]
    assert [a.rule for a in mended.template.applied] == [r for r in rules if r != "restrict"]
    words = "our rewrite did not compile: kernel.cl:3: error: restrictx"
    assert DeclinedRule(rule="restrict", code=DeclineCode.FAILED, reason=words) in mended.declined
    cautious = answer(context, "repairer", faults=[fault], attempt=1).template
    assert cautious is not None
    assert "restrict" not in {a.rule for a in cautious.applied}
