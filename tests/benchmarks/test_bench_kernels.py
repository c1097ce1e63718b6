"""The kernels with templates written by hand that benches record: jobs as a user would post them."""

from pathlib import Path

import pytest

from benchmarks.search.launches import FOLDERS, launch_of
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.jobfile import load_job
from warpsmith.search import enumerate_space

KERNELS = sorted(p.parent.name for p in FOLDERS[1].glob("*/cuda.yaml"))


@pytest.mark.parametrize("name", KERNELS)
def test_the_template_is_the_authors_own(name: str) -> None:
    job = load_job(FOLDERS[1] / name / "cuda.yaml")
    template = make_template(job).template
    assert template.space == job.space
    feasible = enumerate_space(job.space, [w.scope() for w in job.workloads])
    assert 2_000 < len(feasible) < 5_000
    assert feasible.index(job.space.defaults) is not None, "the baseline is one of the configurations"
    found = launch_of(name)
    assert found is not None
    assert found[0] == job.kernel.launch


@pytest.mark.parametrize("name", KERNELS)
def test_corners_of_the_space_build(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = load_job(FOLDERS[1] / name / "cuda.yaml")
    feasible = enumerate_space(job.space, [w.scope() for w in job.workloads])
    template = Template(kernel=job.kernel, space=job.space)
    for row in (0, len(feasible) // 2, len(feasible) - 1):
        kernel = template.configured(feasible.configuration(row))
        request = CompileRequest(
            Backend.CUDA, kernel.source, kernel.kernel.entry, (), (), "nvrtc", "sm_90", 0
        )
        built = compile_cuda(request)
        assert isinstance(built, Compiled), f"{kernel.configuration}: {built.log}"
