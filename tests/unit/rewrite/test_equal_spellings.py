"""Drawn spellings of a kernel are that kernel: they compile, and what they compute is right."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from testbed.kernels.equal_spellings import TRANSFORMATIONS, plain_job, same_template, spelling, spelt_job
from testbed.kernels.kernel_kinds import Kind
from testbed.kernels.kernel_styles import BACKENDS
from testbed.kernels.plain_kernels import BASES
from testbed.repetitions import repetitions
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.job import Job
from warpsmith.domain.template import Template

DRAWS = 40
"""Spellings of a kernel at night."""


def drawn(base: Kind, backend: str) -> Iterator[tuple[str, Job]]:
    """The kernel with each transformation alone, and drawn spellings."""
    source = plain_job(base, backend).kernel.text
    rng = Random(base.name)
    for transformation in TRANSFORMATIONS:
        made = transformation(source, rng)
        if made != source:
            yield f"{base.name}: {transformation.__name__}", spelt_job(base, backend, made)
    for n in range(repetitions(DRAWS, least=8)):
        yield f"{base.name}: {n}", spelt_job(base, backend, spelling(base, backend, Random(n)))


def as_it_is(job: Job) -> Template:
    """The template of no rules."""
    return Template(kernel=job.kernel, space=job.space)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_opencl_spellings_are_right(base: Kind, tmp_path: Path) -> None:
    cases = [
        OpenClCase(f"{label}\n{job.kernel.text}", job, as_it_is(job).configured({}), job.workloads[n % 2])
        for n, (label, job) in enumerate([("plain", plain_job(base, "opencl")), *drawn(base, "opencl")])
    ]
    assert run_opencl(cases, tmp_path) == []


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_cuda_spellings_compile(base: Kind) -> None:
    logs = {job.kernel.text: compile_cuda(job.kernel.text, "corpus") for _, job in drawn(base, "cuda")}
    assert {text: log[:1000] for text, log in logs.items() if log} == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_transformation_changes_some_kernel(backend: str) -> None:
    unused = {t.__name__ for t in TRANSFORMATIONS}
    for base in BASES:
        source = plain_job(base, backend).kernel.text
        unused -= {t.__name__ for t in TRANSFORMATIONS if t(source, Random(0)) != source}
    assert unused == set()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_seed_draws_the_same_spellings_again(backend: str) -> None:
    for base in BASES:
        texts = [spelling(base, backend, Random(n)) for n in range(10)]
        assert texts == [spelling(base, backend, Random(n)) for n in range(10)]
        assert len(set(texts)) > 7


@pytest.mark.parametrize("backend", BACKENDS)
def test_templates_are_compared_by_rules_and_values(backend: str) -> None:
    """Other blanks are no other spelling; another kernel, or one without its guard, has another template."""
    for base in BASES:
        plain = plain_job(base, backend)
        assert same_template(plain, spelt_job(base, backend, plain.kernel.text.replace("  ", "\t")))
    plane, product = (plain_job(BASES[n], backend) for n in (3, 2))
    assert not same_template(plane, product)
