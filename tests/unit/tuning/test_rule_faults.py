"""A template that fails costs the rules at fault, and no others."""

from pathlib import Path

import pytest

from testbed.example_jobs import load_example
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import RuleFault, Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.tuning.trials.rule_faults import rules_at_fault

JOB = load_example("silu_and_mul", "opencl")
WHOLE = make_template(JOB).template
APPLIED = [a.rule for a in WHOLE.applied]
NO: dict[str, Path] = {}


class Probe:
    """Fails where a rule, or two rules together, are in a template; counts how often it is asked."""

    def __init__(self, *bad: set[str]) -> None:
        self.bad = bad
        self.asked: list[Configuration] = []

    def __call__(self, template: Template, configuration: Configuration) -> Rejected | None:
        self.asked.append(configuration)
        rules = {a.rule for a in template.applied}
        found = next((b for b in self.bad if b <= rules), None)
        return None if found is None else Rejected(stage=Stage.COMPILE, reason=f"error: {sorted(found)}")


def at_fault(probe: Probe, template: Template = WHOLE, seconds: float = 60.0) -> tuple[RuleFault, ...]:
    first = Rejected(stage=Stage.COMPILE, reason="error: as a whole")
    return rules_at_fault(JOB, template, first, probe, NO, seconds)


@pytest.mark.parametrize("rule", APPLIED)
def test_one_rule_at_fault_is_found_in_few_probes(rule: str) -> None:
    probe = Probe({rule})
    assert [f.rule for f in at_fault(probe)] == [rule]
    assert len(probe.asked) <= 2 + len(APPLIED).bit_length()


def test_of_several_each_is_found_with_what_it_did() -> None:
    first, last = APPLIED[0], APPLIED[-1]
    found = at_fault(Probe({first}, {last}))
    assert {f.rule for f in found} == {first, last}
    assert {f.reason for f in found} == {f"error: ['{first}']", f"error: ['{last}']"}
    assert found[0].words == f"{found[0].rule}: our rewrite did not compile: {found[0].reason}"


def test_of_two_that_fail_together_only_the_later_is_left_out() -> None:
    assert [f.rule for f in at_fault(Probe({APPLIED[1], APPLIED[3]}))] == [APPLIED[3]]


def test_every_rule_may_be_at_fault() -> None:
    assert sorted(f.rule for f in at_fault(Probe(*({r} for r in APPLIED)))) == sorted(APPLIED)


def test_what_fails_without_any_rule_is_no_rule_s_fault() -> None:
    assert at_fault(Probe(set())) == ()


def test_a_template_that_the_rules_did_not_make_is_left_alone() -> None:
    other = WHOLE.model_copy(
        update={"kernel": WHOLE.kernel.model_copy(update={"source": "// mine\n" + WHOLE.kernel.text})}
    )
    assert at_fault(Probe({"restrict"}), other) == ()


def test_nothing_is_named_when_the_time_is_over() -> None:
    assert at_fault(Probe({APPLIED[2]}), seconds=-1.0) == ()


def test_values_that_a_template_is_fixed_to_are_those_that_are_probed() -> None:
    space = WHOLE.space
    wide = tuple(
        p.model_copy(update={"default": 256}) if p.name == "WS_BLOCK" else p for p in space.parameters
    )
    template = WHOLE.model_copy(update={"space": space.model_copy(update={"parameters": wide})})
    probe = Probe({APPLIED[-1]})
    assert at_fault(probe, template)
    assert {c["WS_BLOCK"] for c in probe.asked if "WS_BLOCK" in c} == {256}
