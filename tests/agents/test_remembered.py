"""Questions tell what earlier jobs taught; the rules take the template that gained on a known kernel."""

import json
from dataclasses import replace

import pytest

from agents.context import StepContext
from agents.providers.external import ask
from agents.questions.prompting import version
from agents.questions.role_inputs import question
from agents.rules.provider import RulesProvider
from warpsmith.domain.jobs.job import RewritePolicy
from warpsmith.domain.templates.template import AppliedRule
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.lessons.lesson import Attempt, Lesson, Served
from warpsmith.tuning.step_facts import Earlier
from warpsmith.tuning.tasks import StepPayload

PAYLOAD = StepPayload(role="templater", round=1)
WINNER = {"BLOCK": 128, "PER": 4}


def taught(context: StepContext, speedup: float = 1.8, **changes: object) -> Earlier:
    """The lesson of a job on the context's kernel whose written template gained."""
    template = RulesProvider().answer(PAYLOAD, context).template
    assert template is not None
    written = template.model_copy(
        update={"applied": (AppliedRule(rule="written", detail="rows in registers"),)}
    )
    attempts = (
        Attempt(template=written, trials=12, objective=1 / speedup, best=((WINNER, 1 / speedup),)),
        Attempt(template=template, trials=1, rejected="y: 7 of 4096 values are wrong"),
    )
    keys = [w.key for w in context.job.workloads]
    lesson = Lesson(
        job=context.job,
        device=DEVICE,
        device_class=DEVICE.device_class,
        speedup=speedup,
        attempts=attempts,
        served=(
            Served(workload=keys[0], attempt=0, configuration=WINNER, speedup=speedup),
            Served(workload=keys[1]),
        ),
        bounds=("bytes", "launch"),
    )
    told = Earlier("job-1", lesson, 1.0, is_same_kernel=True, is_same_device_class=True)
    return replace(told, **changes)  # type: ignore[arg-type]


@pytest.fixture
def known(context: StepContext) -> StepContext:
    """The context of a kernel that an earlier job tuned."""
    return replace(context, earlier=[taught(context)])


def test_a_question_tells_what_gained_and_what_failed(known: StepContext) -> None:
    asked = ask(PAYLOAD, question(PAYLOAD, known))
    (line,) = asked.question["earlier"]
    assert line == (
        f"job job-1: this kernel, on {DEVICE.name}, bound by bytes, launch. Verified: n=4096: 1.80x with "
        "BLOCK=128, PER=4; n=1001: your kernel. Tried: rows in registers: 1.80x of your kernel's speed after "
        "12 trials | " + line.split(" | ")[1]
    )
    assert line.endswith("rejected: y: 7 of 4096 values are wrong")
    assert asked.question["example"]["applied"] == ["written"]
    assert "`earlier` tells" in asked.instructions and asked.version.endswith(".earlier-1")


def test_without_earlier_jobs_nothing_tells_of_them(context: StepContext) -> None:
    asked = ask(PAYLOAD, question(PAYLOAD, context))
    shown = json.dumps([asked.instructions, asked.question, asked.version])
    assert "earlier-" not in shown and '"example"' not in shown and "`earlier`" not in shown


@pytest.mark.parametrize("role", ["planner", "templater", "repairer"])
def test_who_is_told(known: StepContext, role: str) -> None:
    payload = StepPayload(role=role, round=1)
    asked = question(payload, known)
    assert version(payload.role, asked).endswith(".earlier-1")
    assert ("example" in asked.model_dump()) is (role != "planner")


def test_a_sibling_of_another_device_is_called_so(context: StepContext) -> None:
    other = taught(context, likeness=0.71, is_same_kernel=False, is_same_device_class=False)
    (line,) = question(PAYLOAD, replace(context, earlier=[other])).model_dump()["earlier"]
    assert "a kernel 71% like this one" in line and "another device class" in line


def test_a_template_that_gained_nothing_is_no_example(context: StepContext) -> None:
    poor = taught(context, speedup=1.01)
    asked = question(PAYLOAD, replace(context, earlier=[poor])).model_dump()
    assert asked["earlier"] and "example" not in asked


def test_the_rules_take_the_template_of_a_known_kernel(known: StepContext) -> None:
    found = RulesProvider().answer(PAYLOAD, known)
    assert found.template is not None
    assert [a.rule for a in found.template.applied] == ["written"]
    assert found.template.warm_starts == (WINNER,)
    assert found.notes == ("the template of job job-1, which gained on this kernel",)


def test_what_keeps_the_rules_from_taking_it(known: StepContext, context: StepContext) -> None:
    def applied(of: StepContext, payload: StepPayload = PAYLOAD) -> bool:
        template = RulesProvider().answer(payload, of).template
        return template is not None and any(a.rule == "written" for a in template.applied)

    def told(**changes: object) -> StepContext:
        return replace(context, earlier=[taught(context, **changes)])  # type: ignore[arg-type]

    assert applied(known)
    assert not applied(told(is_same_kernel=False))
    assert applied(told(is_same_device_class=False)), "another driver does not matter"
    other = taught(context).lesson.model_copy(update={"device": DEVICE.model_copy(update={"name": "other"})})
    assert not applied(told(lesson=other))
    assert not applied(told(speedup=1.0))
    assert not applied(known, PAYLOAD.model_copy(update={"attempt": 1}))
    others = scale_job(parameters=[{"name": "BLOCK", "values": [32, 64]}, {"name": "PER", "values": [1, 2]}])
    assert not applied(replace(known, job=others))


def test_a_job_that_forbids_a_rule_gets_no_template_made_by_it(context: StepContext) -> None:
    lesson = taught(context).lesson
    vectors = AppliedRule(rule="vector_width", detail="x")
    first = lesson.attempts[0]
    made = first.model_copy(update={"template": first.template.model_copy(update={"applied": (vectors,)})})
    told = replace(taught(context), lesson=lesson.model_copy(update={"attempts": (made, lesson.attempts[1])}))
    known = replace(context, earlier=[told])
    assert RulesProvider().answer(PAYLOAD, known).notes
    denied = known.job.model_copy(update={"rewrite": RewritePolicy(deny=("vector_width",))})
    assert not RulesProvider().answer(PAYLOAD, replace(known, job=denied)).notes
