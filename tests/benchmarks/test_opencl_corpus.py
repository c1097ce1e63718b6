"""The bench over kernels that others wrote, tried on sources written here in their manner."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.opencl_corpus.kernels import EXTENT, find, unwrapped
from benchmarks.opencl_corpus.sources import Project
from benchmarks.opencl_corpus.templates import table, totals

PROJECT = Project("mine", "nobody/nothing", "0" * 40, ".", ("-DSCALE=2",))
SOURCE = """
__kernel void shift(__global float *x, __global int *from, int rows, int columns) {
    int c = get_global_id(0);
    int r = get_global_id(1);
    if ((r < rows) && (c < columns)) x[r * columns + c] += SCALE * from[c];
}
__kernel void nothing(int rows) { }
"""


def test_a_kernel_of_a_corpus_becomes_a_job_whose_grid_covers_the_sizes_it_is_compared_with(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.cl").write_text(SOURCE)
    shift, nothing = find(PROJECT, tmp_path)
    assert shift.name == "mine/a.cl:shift"
    assert shift.job is not None
    kernel = shift.job.kernel
    assert [str(e.text) for e in kernel.launch.grid] == ["ceil_div(columns, 16)", "ceil_div(rows, 16)"]
    assert shift.job.workloads[0].dimensions == {"rows": EXTENT, "columns": EXTENT}
    assert kernel.options == ("-DSCALE=2",)
    indices = kernel.arguments[1].draw
    assert indices is not None and indices.high == EXTENT
    assert nothing.job is None
    assert "output" in nothing.why_not


@pytest.mark.parametrize("end", ["", "\n#endif", "\n#endif // HERE\n"])
def test_a_source_inside_a_macro_that_makes_it_a_string_is_taken_out(end: str) -> None:
    text = f"static const char* const source = TO_STRING(\n{SOURCE}\n);\n{end}"
    assert unwrapped(text).strip() == SOURCE.strip()
    assert unwrapped(SOURCE) == SOURCE


def test_totals_count_kernels_by_what_became_of_them() -> None:
    rows: list[dict[str, Any]] = [
        {"kernel": "a", "cannot": "why"},
        {"kernel": "b", "does not compile": "error"},
        {
            "kernel": "c",
            "rules": ["unroll"],
            "parameters": {"U": 2},
            "structural": [],
            "compiles": False,
            "log": "error",
        },
        {
            "kernel": "d",
            "rules": ["vector_width", "unroll"],
            "parameters": {"V": 3},
            "structural": ["V"],
            "compiles": True,
            "tried": 4,
            "wrong": [{"why": "x"}],
            "configurations": 9,
        },
    ]
    found = totals(rows)
    assert found["made into templates"] == 2
    assert found["templates that compile"] == 1
    assert found["with a structural parameter"] == 1
    assert found["right on all configurations tried"] == 0
    assert "3 of 4" in table(rows)
