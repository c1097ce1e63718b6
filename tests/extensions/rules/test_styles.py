"""However a kernel is written, what rules make of it compiles and is right: alone, in pairs, and all."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from testbed.kernels.kernel_kinds import KINDS
from testbed.kernels.kernel_styles import BACKENDS, FINISHES, STYLES, Written, chosen_corpus, corpus, written
from testbed.repetitions import share
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.jobs.job import RewritePolicy
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.extensions.rules.catalogue import ALL_RULES
from warpsmith.extensions.rules.templater import make_template

PARTS = 4
"""Of the kinds of kernels, each a test of its own: with others beside it, the slowest test sets the time."""


def made(w: Written, *allowed: str) -> Template:
    """The template by these rules; by all of them where none is named."""
    policy = RewritePolicy.model_validate({"allow": allowed})
    return make_template(w.job.model_copy(update={"rewrite": policy})).template


def sets_of_rules(w: Written) -> Iterator[tuple[str, ...]]:
    """No rules would be `()`; every rule alone, and pairs where the first applies to the kernel as it is."""
    alone = [r.name for r in ALL_RULES if made(w, r.name).applied]
    yield from ((name,) for name in alone)
    yield from (pair for pair in combinations([r.name for r in ALL_RULES], 2) if pair[0] in alone)


def every_set(backend: str, part: int) -> Iterator[tuple[str, Written, Template]]:
    """Templates of every kernel by all rules; of each kind in one style by each rule and by pairs."""
    kinds = KINDS[part::PARTS]
    for w in chosen_corpus(backend):
        if w.kind in kinds:
            yield f"{w.label}: all rules", w, made(w)
    finishes = list(FINISHES)
    for kind in kinds:
        n = KINDS.index(kind)
        w = written(kind, STYLES[n % len(STYLES)], finishes[n % len(finishes)], backend)
        for rules in share(sets_of_rules(w), lambda rules: rules[:1]):
            yield f"{w.label}: {' and '.join(rules)}", w, made(w, *rules)


def once(backend: str, part: int) -> Iterator[tuple[str, Written, ConfiguredKernel]]:
    """The default configurations of all these, each source once."""
    seen = set()
    for label, w, template in every_set(backend, part):
        kernel = template.configured(template.space.defaults)
        if kernel.key not in seen:
            seen.add(kernel.key)
            yield label, w, kernel


@pytest.mark.parametrize("part", range(PARTS))
def test_opencl_templates_are_right_with_their_defaults(part: int, tmp_path: Path) -> None:
    cases = [
        OpenClCase(label, w.job, kernel, w.job.workloads[n % 2])
        for n, (label, w, kernel) in enumerate(once("opencl", part))
    ]
    assert run_opencl(cases, tmp_path) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_cuda_templates_compile_with_their_defaults(part: int) -> None:
    logs = {
        label: compile_cuda(kernel.source, kernel.kernel.entry) for label, _, kernel in once("cuda", part)
    }
    assert {label: log[:1000] for label, log in logs.items() if log} == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_corpus_is_in_reach_of_the_rules(backend: str) -> None:
    """A rule that declines everywhere is not tested by these kernels."""
    applied = {a.rule for w in corpus(backend) for a in made(w).applied}
    only_cuda = {"index_packs"} if backend == "opencl" else set()
    assert applied == {r.name for r in ALL_RULES} - only_cuda
