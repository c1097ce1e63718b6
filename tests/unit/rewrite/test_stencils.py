"""Neighbours staged in local memory: right on every shape, and every reason to decline."""

from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.element_kernels import STENCIL, stencil_job
from tests.unit.rewrite.test_declines import reason
from warpsmith.rewrite.templater import make_template

ABOVE = "x[(i-1)*columns + j + 0]"


def test_staged_neighbours_are_right(tmp_path: Path) -> None:
    job = stencil_job()
    template = make_template(job).template
    cases = [
        OpenClCase(job.name, job, template.configured(template.space.defaults | chosen), w)
        for w in job.workloads
        for chosen in (
            {"WS_HALO": 0},
            {"WS_HALO": 1},
            {"WS_HALO": 1, "WS_BLOCK_X": 8, "WS_BLOCK_Y": 1},
            {"WS_HALO": 1, "WS_BLOCK_X": 32, "WS_BLOCK_Y": 16},
        )
    ]
    assert run_opencl(cases, tmp_path) == []


def test_only_what_a_thread_would_read_is_fetched() -> None:
    text = make_template(stencil_job()).template.kernel.text
    assert "ws_near_0[(WS_BLOCK_Y + 2) * (WS_BLOCK_X + 3)]" in text
    fetched = text[text.index("for (int ws_n") : text.index("ws_near_0[ws_n]")]
    assert fetched.count("||") == 4  # five distances, each with its own bounds


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (ABOVE, "(i > 5 ? x[(i-1)*columns + j] : 0)", "read under a condition"),
        (ABOVE, "x[(i-1)*columns + i]", "indices of different forms|at no fixed distance"),
        (ABOVE, "x[(int)x[i*columns + j]]", "at no fixed distance"),
        (ABOVE, "x[(i*2)*columns + j]", "indices of different forms"),
        ("{\n        y", "{ x[i] = 0;\n        y", "no buffer is read at several"),
        ("{\n        y", "{ barrier(CLK_LOCAL_MEM_FENCE);\n        y", "calls barrier"),
    ],
)
def test_what_cannot_be_staged_declines(old: str, new: str, why: str) -> None:
    assert old in STENCIL
    found = reason(make_template(stencil_job(STENCIL.replace(old, new))), "stencil_tile")
    assert any(w in found for w in why.split("|")), found
