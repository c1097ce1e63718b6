"""Rows shared by the threads of a team: right on every shape, and every reason to decline."""

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.element_kernels import (
    COLUMNS,
    PROJECT,
    ROWS,
    nearest_job,
    nested_job,
    product_job,
    project_job,
    softmax_job,
    times_job,
)
from tests.nvrtc_compile import compile_cuda
from tests.unit.rewrite.test_declines import reason
from warpsmith.domain.job import Job
from warpsmith.rewrite.templater import make_template

LOOP = "for (j = 0; j < columns; j++)"
UPDATE = "y[i] += a[i * columns + j] * x[j];"


def detail(job: Job) -> str:
    """What the rule says of itself; why it declined where it did."""
    found = make_template(job)
    return next(
        (a.detail for a in found.template.applied if a.rule == "row_group"), reason(found, "row_group")
    )


@pytest.mark.parametrize(
    "make",
    [
        times_job,
        lambda: times_job(COLUMNS),
        product_job,
        softmax_job,
        nearest_job,
        nested_job,
        project_job,
    ],
)
def test_every_team_is_right(make: Callable[[], Job], tmp_path: Path) -> None:
    job = make()
    template = make_template(job).template
    assert "WS_TEAM" in template.space.defaults, detail(job)
    block = {p: 32 if p == "WS_BLOCK" else v for p, v in template.space.defaults.items()}
    cases = [
        OpenClCase(job.name, job, template.configured(block | {"WS_TEAM": team}), w)
        for w in job.workloads
        for team in (1, 2, 16)
    ]
    assert run_opencl(cases, tmp_path) == []


def test_neighbouring_threads_read_neighbouring_elements() -> None:
    assert "neighbouring iterations" in detail(times_job(ROWS))
    assert "neighbouring rows" in detail(times_job(COLUMNS))


def test_a_team_shares_every_loop_of_a_softmax() -> None:
    assert detail(softmax_job()).startswith("3 loop(s)")
    assert detail(nearest_job()).startswith("1 loop(s)")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (UPDATE, "y[i] = a[i * columns + j] - y[i] * x[j];", "carries a value"),
        (UPDATE, "{ if (x[j] > 3) break; " + UPDATE + " }", "may end early"),
        (UPDATE, "y[(i + j) % rows] = a[i * columns + j];", "may be the same element in two iterations"),
        (UPDATE, "y[j * 0] = a[i * columns + j];", "may be the same element in two iterations"),
        (UPDATE, "{ y[j] = a[i * columns + j]; y[j + 1] = 2; }", "uses other elements of the same buffer"),
        (UPDATE, "atomic_inc((__global int*)y);", "calls atomic_inc"),
        (LOOP, "for (j = 0; j < columns; j += 2)", "writes memory and changes j"),
    ],
)
def test_what_a_team_cannot_share_declines(old: str, new: str, why: str) -> None:
    assert old in ROWS
    found = reason(make_template(times_job(ROWS.replace(old, new))), "row_group")
    assert why in found, found


def test_a_counter_that_is_read_later_declines() -> None:
    found = reason(make_template(times_job(ROWS.replace("y[i] = 2 *", "y[i] = j *"))), "row_group")
    assert "j is read after it" in found


def test_a_cuda_team_compiles() -> None:
    source = ROWS.replace("__kernel", 'extern "C" __global__').replace("__global ", "")
    source = source.replace("get_global_id(0)", "blockIdx.x * blockDim.x + threadIdx.x")
    job = times_job()
    kernel = job.kernel.model_dump() | {"backend": "cuda", "source": source}
    template = make_template(Job.model_validate(job.model_dump() | {"kernel": kernel})).template
    for team in (1, 4, 32):
        kernel_of = template.configured(template.space.defaults | {"WS_TEAM": team})
        assert compile_cuda(kernel_of.source, "times") == "", team


def test_what_a_team_hands_over_in_memory_is_not_restrict() -> None:
    text = make_template(project_job()).template.kernel.text
    assert "restrict q" in text
    assert "restrict r" not in text
    asserted = PROJECT.replace("float *r,", "float * restrict r,")
    job = project_job()
    kernel = job.kernel.model_copy(update={"source": asserted})
    found = make_template(job.model_copy(update={"kernel": kernel}))
    assert "r is restrict" in reason(found, "row_group")
