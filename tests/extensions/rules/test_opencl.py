"""Templates of the OpenCL examples stay right: defaults and random configurations, on PoCL."""

import random
from pathlib import Path

import pytest

from testbed.example_jobs import FAMILIES, OpenClCase, load_example, run_opencl, small
from testbed.repetitions import repetitions
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.templates.space import allows
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.testing.jobs import DEVICE

CONFIGURATIONS = 7
FEWEST = 2
"""Configurations of a template in the gate: the defaults and one that is drawn."""


def feasible(
    template: Template, workload: Workload, seed: int, count: int
) -> list[dict[str, int | float | bool | str]]:
    """The defaults and random configurations that a workload on a device of 1024 threads allows.

    Args:
        count: of both together, at night.
    """
    rng = random.Random(seed)
    found = [dict(template.space.defaults)]
    scope = {**DEVICE.scope(), **workload.scope()}
    while len(found) < repetitions(count, FEWEST):
        drawn = {p.name: rng.choice(p.values) for p in template.space.parameters}
        if allows(template.space.constraints, {**scope, **drawn}) is None and drawn not in found:
            found.append(drawn)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_template_is_right(family: str, tmp_path: Path) -> None:
    job = small(load_example(family, "opencl"), family)
    template = make_template(job).template
    cases = [
        OpenClCase(family, job, template.configured(c), workload)
        for workload in job.workloads
        for c in feasible(template, workload, seed=len(family), count=CONFIGURATIONS)
    ]
    assert run_opencl(cases, tmp_path) == []
