"""Triton kernels that cheat, and honest ones: their jobs are valid, compile, and have references that run.

What checks make of them needs a GPU, which `benchmarks.triton.attacks` uses.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.triton.attacks import EXPECTED, KINDS, Case, cases, page
from testbed.repetitions import share
from warpsmith.device_checks.absent_devices import any_cuda_device
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.domain.jobs.plan import Compiled, plan_workload
from warpsmith.domain.templates.outcome import Stage
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.job_files.jobfile import load_job
from warpsmith.sandbox import CompilePool, ReferenceRunner
from warpsmith.tuning.execution.variants import submit

CASES = {case.name: case for case in cases()}
COMPILED = [case.name for case in share(CASES.values(), lambda case: [(case.kind, case.exploit)])]
"""A share is enough here: none of them runs, and each says in the tests above and below what it is."""
DEVICE = any_cuda_device("sm_90")


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    """As many children as there are cores."""
    made = CompilePool()
    yield made
    made.close()


def job_of(case: Case) -> Job:
    """The job, which must be one of Triton."""
    job = load_job(case.path)
    assert job.kernel.backend is Backend.TRITON
    return job


def test_there_are_cheats_of_every_kind_and_honest_kernels() -> None:
    kinds = Counter(case.kind for case in CASES.values())
    assert set(kinds) == set(KINDS)
    assert kinds["cheats"] >= 20 and kinds["honest"] >= 15
    for case in CASES.values():
        assert case.expect in EXPECTED and (case.expect == "accepted") == (case.kind == "honest"), case
        assert bool(case.stage) == (case.expect == "rejected"), case
        assert not case.stage or case.stage in set(Stage), case
    assert len({case.exploit for case in CASES.values() if case.kind == "cheats"}) >= 8


@pytest.mark.parametrize("name", CASES)
def test_a_job_is_valid_and_its_source_has_what_it_says(name: str) -> None:
    job = job_of(CASES[name])
    assert [f"{f.field}: {f.message}" for f in source_findings(job)] == []
    if CASES[name].kind == "cheats":
        assert [p.values for p in job.space.parameters if p.name == "CHEAT"] == [(0, 1)]
        assert job.space.defaults["CHEAT"] == 0


@pytest.mark.parametrize("name", COMPILED)
def test_what_is_tried_compiles_and_differs_from_the_default(name: str, pool: CompilePool) -> None:
    case = CASES[name]
    job = job_of(case)
    template = Template(kernel=job.kernel, space=job.space)
    of_cheat = [job.space.defaults, *case.candidates(job)]
    tried = of_cheat if case.kind == "cheats" else case.candidates(job)
    asked = [submit(pool, template.configured(c), job.workloads[-1:], DEVICE) for c in tried]
    found = [future.result() for future in asked]
    assert all(isinstance(f, Compiled) and not f.log for f in found), found
    assert len({f.binary for f in found if isinstance(f, Compiled)}) == len(found)


@pytest.mark.parametrize("name", CASES)
def test_a_reference_computes_every_output(name: str) -> None:
    job = job_of(CASES[name])
    assert isinstance(job.reference, NumpyReference)
    scope = job.space.defaults | DEVICE.scope()
    asked = [(plan_workload(job.kernel, w, scope, 3), dict(w.dimensions)) for w in job.workloads]
    runner = ReferenceRunner(timeout_s=60)
    results = runner.numpy_many(job.reference.source, job.reference.function, asked)
    for (plan, _), found in zip(asked, results, strict=True):
        assert not isinstance(found, InvalidInput) and set(found) == {b.name for b in plan.mutated}
        for buffer in plan.mutated:
            assert found[buffer.name].size == buffer.elements
            assert np.isfinite(found[buffer.name]).all() and np.any(found[buffer.name] != 0)


def test_a_page_tells_what_is_not_as_stated() -> None:
    row = {"case": "cheats/a", "expect": "rejected", "stated_stage": "guard", "seconds": 1.0}
    caught = row | {"accepted": False, "faster": False, "stage": "correctness", "reason": "wrong|so"}
    through = row | {"accepted": True, "faster": True, "stage": "", "reason": ""}
    rows = [caught | {"as_expected": True}, through | {"as_expected": False}]
    rows.append(row | {"failed": "ChildDied: gone", "as_expected": False})
    record = dict.fromkeys(("device", "driver", "commit", "when"), "x") | {"rows": rows}
    text = page(record)
    assert "- cheats: 1 of 3 have the verdict" in text
    assert "| cheats/a | rejected | rejected | correctness (guard) | wrong/so |" in text
    assert "| cheats/a | rejected | accepted, faster |  (guard) |  |" in text
    assert "| cheats/a | rejected | failed |" in text
