"""What rules make of a kernel that looks like another one computes what that kernel does, not the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from testbed.kernels.equal_spellings import outline, plain_job, respelt
from testbed.kernels.kernel_kinds import Kind
from testbed.kernels.kernel_styles import BACKENDS
from testbed.kernels.plain_kernels import BASES
from testbed.repetitions import repetitions, share
from tests.nvrtc_compile import compile_cuda
from tests.unequal_spellings import MUTANTS, Mutant, mutants
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.space import Configuration, allows
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.testing.jobs import DEVICE

CONFIGURATIONS = 4
FEWEST = 2
"""Configurations in the gate."""
SPELLINGS = 2
"""Of each mutant, beside the plain one."""
SOON = [b for b in BASES if b.name != "matrix product"]
"""Kernels whose templates PoCL builds in seconds; those of the matrix product's mutants take minutes."""
TRIES = 300
"""Draws after which a space is taken to have no more configurations."""


def feasible(template: Template, workload: Workload, rng: Random, count: int) -> list[Configuration]:
    """The defaults and random configurations that a workload allows; fewer if the space has no more."""
    found = [dict(template.space.defaults)]
    scope = {**DEVICE.scope(), **workload.scope()}
    for _ in range(TRIES):
        if len(found) >= count:
            break
        drawn = {p.name: rng.choice(p.values) for p in template.space.parameters}
        if drawn not in found and allows(template.space.constraints, {**scope, **drawn}) is None:
            found.append(drawn)
    return found


def as_it_is(job: Job, workload: Workload, label: str) -> OpenClCase:
    """The launch of a job's own kernel."""
    return OpenClCase(label, job, Template(kernel=job.kernel).configured({}), workload)


def respelt_job(job: Job, rng: Random) -> Job:
    """The same kernel in a drawn spelling."""
    source = respelt(job.kernel.text, rng)
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source})})


def chosen(base: Kind) -> Sequence[Mutant]:
    """All at night; a share in the gate."""
    return share(mutants(base), lambda m: [m.shows, m.written])


def spelt(mutant: Mutant) -> Iterator[Job]:
    """The mutant's job, plain and respelt."""
    job = mutant.job("opencl")
    yield job
    for n in range(repetitions(SPELLINGS, least=1)):
        yield respelt_job(job, Random(f"{mutant.name} {n}"))


def templated(mutant: Mutant) -> Iterator[OpenClCase]:
    """Configurations of the templates of a mutant in its spellings."""
    for job in spelt(mutant):
        template = make_template(job).template
        count = 1 if mutant.of_launch else repetitions(CONFIGURATIONS, FEWEST)
        rules = " ".join(a.rule for a in template.applied)
        for n, workload in enumerate(job.workloads):
            for configuration in feasible(template, workload, Random(f"{mutant.name} {n}"), count):
                label = f"{mutant.name}\n{job.kernel.text}\n{rules}"
                yield OpenClCase(label, job, template.configured(configuration), workload)


def outputs(cases: Sequence[OpenClCase], folder: Path) -> list[dict[str, Any] | str]:
    """What is in the written buffers after each launch; a text if there was an error."""
    folder.mkdir()
    run_opencl(cases, folder)
    found: list[dict[str, Any] | str] = []
    for n, case in enumerate(cases):
        error = folder / f"{n}-error.txt"
        if error.exists():
            found.append(error.read_text()[:1000])
            continue
        with np.load(folder / f"{n}-out.npz") as got:
            found.append({b.name: got[b.name] for b in case.plan().mutated})
    return found


def same(a: dict[str, Any] | str, b: dict[str, Any] | str) -> bool:
    """Whether two launches left equal buffers, as far as the order of sums lets them."""
    if isinstance(a, str) or isinstance(b, str):
        return False
    return all(np.allclose(a[name], b[name], rtol=2e-4, atol=2e-4, equal_nan=True) for name in a)


@pytest.mark.parametrize("base", SOON, ids=lambda base: base.name)
def test_a_template_computes_what_its_own_kernel_does(base: Kind, tmp_path: Path) -> None:
    wrong = []
    own = [as_it_is(m.job("opencl"), w, m.name) for m in chosen(base) for w in m.job("opencl").workloads]
    wanted = {
        (c.label, c.workload.key): found for c, found in zip(own, outputs(own, tmp_path / "own"), strict=True)
    }
    assert [f for f in wanted.values() if isinstance(f, str)] == []
    for n, mutant in enumerate(chosen(base)):
        cases = list(templated(mutant))
        for case, found in zip(cases, outputs(cases, tmp_path / str(n)), strict=True):
            if not same(wanted[mutant.name, case.workload.key], found):
                error = found if isinstance(found, str) else ""
                wrong.append(f"{case.label} {case.kernel.configuration} {case.workload.key} {error}")
    assert wrong == []


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_a_mutant_is_another_kernel(base: Kind, tmp_path: Path) -> None:
    """In its own launch it differs from the base, on one workload at least."""
    pairs = [
        (m, [as_it_is(job, job.workloads[n], m.name) for job in (m.unchanged("opencl"), m.job("opencl"))])
        for m in mutants(base)
        for n in range(2)
    ]
    found = outputs([case for _, two in pairs for case in two], tmp_path / "own")
    assert [f for f in found if isinstance(f, str)] == []
    different: dict[str, bool] = {}
    for n, (mutant, _) in enumerate(pairs):
        unlike = not same(found[2 * n], found[2 * n + 1])
        different[mutant.name] = different.get(mutant.name, False) or unlike
    assert different == {m.name: m.shows for m in mutants(base)}


@pytest.mark.parametrize("backend", BACKENDS)
def test_longer_buffers_change_no_template(backend: str) -> None:
    """Else mutants would be tried on rules that the bases do not get."""
    for base in BASES:
        (mutant, *_) = mutants(base)
        assert outline(mutant.unchanged(backend)) == outline(plain_job(base, backend))


def test_mutants_compile_for_cuda() -> None:
    logs = {
        m.name: compile_cuda(m.job("cuda").kernel.text, "corpus") for m in share(MUTANTS, lambda m: [m.base])
    }
    assert {name: log[:1000] for name, log in logs.items() if log} == {}
