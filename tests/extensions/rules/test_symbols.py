"""Rules keep the declaration of a variable that the job fills, and what the kernel computes from it."""

import re
from pathlib import Path

import numpy as np

from tests.cuda_on_cpu import results
from tests.symbol_jobs import blur_job
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.catalogue import ALL_RULES
from warpsmith.extensions.rules.templater import make_template

DECLARED = re.compile(r"^__constant__ float taps\[\w+\];$", re.M)


def test_every_rule_keeps_a_symbol_and_what_is_computed_from_it(tmp_path: Path) -> None:
    own = blur_job(n=300)
    found = {"own": Template(kernel=own.kernel, space=own.space), "all": make_template(own).template}
    for rule in ALL_RULES:
        report = make_template(
            own.model_copy(update={"rewrite": own.rewrite.model_copy(update={"allow": (rule.name,)})})
        )
        if report.template.space.parameters:
            found[rule.name] = report.template
    assert len(found) > 4
    for name, template in found.items():
        assert DECLARED.search(template.kernel.text), name
        assert template.kernel.symbols == own.kernel.symbols, name
    runs = []
    for template in found.values():
        usual = {name: int(value) for name, value in template.space.defaults.items()}
        runs += [(template, usual)]
        runs += [(template, {**usual, p.name: int(p.values[-1])}) for p in template.space.parameters]
    got = results(own, runs, tmp_path)
    for values in got[1:]:
        np.testing.assert_allclose(values["y"][64:-64], got[0]["y"][64:-64], rtol=1e-5)
    assert np.ptp(got[0]["y"][64:-64]) > 1.0
