"""Every parameter that a rule adds says what one would write without measuring."""

import re

import pytest
from pydantic import ValidationError

from agents.context import StepContext
from agents.replies.fixed_template import fixed, typical
from testbed.example_jobs import FAMILIES, load_example
from testbed.kernels.kernel_styles import BACKENDS, chosen_corpus
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.templater import make_template
from warpsmith.testing.jobs import scale_job

AS_IT_IS = re.compile(r"WS_(NEAR|RESIDENT|BLOCK)(_[XYZ])?$")
"""Parameters whose usual value may be the one that leaves the kernel as it is."""


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_say_what_is_usual_and_it_is_what_they_are_for(backend: str) -> None:
    made = [make_template(w.job).template for w in chosen_corpus(backend)]
    made += [make_template(load_example(family, backend)).template for family in FAMILIES]
    added = [p for t in made for p in t.space.parameters]
    assert len({p.name for p in added}) > 15
    for p in added:
        assert p.usual is not None, p.name
        rule = next(a.rule for t in made for a in t.applied if p.name in a.parameters)
        if rule != "lift_constants" and len(p.values) > 1 and not AS_IT_IS.match(p.name):
            assert p.usual != p.baseline_value, p.name


def test_a_lifted_constant_starts_at_what_its_author_wrote() -> None:
    template = make_template(load_example("matmul", "cuda")).template
    tile = next(p for p in template.space.parameters if p.name == "WS_TILE")
    assert (tile.default, tile.usual) == (16, 16)


def test_the_first_configuration_is_the_usual_one_and_the_users_own_default() -> None:
    job = scale_job()
    context = StepContext(job=job)
    template = make_template(job).template
    chosen = typical(template, context)
    assert chosen["BLOCK"] == 64
    usual = {p.name: p.usual for p in template.space.parameters if p.usual is not None}
    assert usual and {n: chosen[n] for n in usual} == usual
    assert fixed(template, chosen).space.defaults == chosen


def test_a_user_may_say_what_is_usual() -> None:
    block = {"name": "BLOCK", "values": [32, 64, 128], "default": 64, "usual": 128}
    job = scale_job(parameters=[block, {"name": "PER", "values": [1, 2]}])
    assert typical(make_template(job).template, StepContext(job=job))["BLOCK"] == 128
    with pytest.raises(ValidationError, match="usual value True of A is not among its values"):
        Parameter(name="A", values=(1, 2), usual=True)
