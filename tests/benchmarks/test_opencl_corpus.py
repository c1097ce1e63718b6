"""The bench over kernels that others wrote, tried on sources written here in their manner."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from benchmarks.opencl_corpus import bindings
from benchmarks.opencl_corpus.bindings import alone, unwrapped
from benchmarks.opencl_corpus.sources import PROJECTS, Project
from warpsmith.domain.expressions import Expression

PROJECT = Project("mine", "nobody/nothing", "0" * 40, ".", ("-DSCALE=2",))
SOURCE = """
__kernel void shift(__global float *x, __global int *from, int rows, int columns) {
    int c = get_global_id(0);
    int r = get_global_id(1);
    if ((r < rows) && (c < columns)) x[r * columns + c] += SCALE * from[c];
}
__kernel void nothing(int rows) { }
"""
BINDING = """
- kernel: mine/a.cl:shift
  sizes: {rows: 40, columns: 60}
  shapes: {x: [rows, columns], from: [columns]}
  roles: {from: input}
  draws: {from: {distribution: integers, low: 0, high: 9}}
  values: {columns: "60"}
  constraints: ["rows > 1"]
  grid: ["ceil_div(columns, 16)", "ceil_div(rows, 16)"]
  block: [16, 16]
"""


@pytest.mark.parametrize("end", ["", "\n#endif", "\n#endif // HERE\n"])
def test_a_source_inside_a_macro_that_makes_it_a_string_is_taken_out(end: str) -> None:
    text = f"static const char* const source = TO_STRING(\n{SOURCE}\n);\n{end}"
    assert unwrapped(text).strip() == SOURCE.strip()
    assert unwrapped(SOURCE) == SOURCE


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_bound_kernel_has_the_others_of_its_file_unless_its_project_says_alone(
    is_alone: bool, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs.yaml").write_text(BINDING)
    monkeypatch.setattr(bindings, "BINDINGS", tmp_path / "jobs.yaml")
    project = dataclasses.replace(PROJECT, alone=is_alone)
    monkeypatch.setattr(bindings, "PROJECTS", (project,))
    (bound,) = bindings.bound_jobs(corpus, None, seconds=7, sizes={"rows": 41})
    name, job = bound
    assert name == "mine/a.cl:shift"
    assert job.kernel.source is not None
    assert ("nothing" in job.kernel.source) is not is_alone
    assert job.kernel.options == ("-DSCALE=2",)
    assert job.workloads[0].dimensions == {"rows": 41, "columns": 60}
    assert job.budget.seconds == 7
    assert [str(e) for e in job.kernel.arguments[0].shape] == ["rows", "columns"]
    assert [str(c.expression) for c in job.constraints] == ["rows > 1"]
    rows, columns = (a.value for a in job.kernel.arguments[2:])
    assert str(rows) == "rows"
    assert isinstance(columns, Expression) and columns.names, "checks change plain numbers"
    assert columns.integer({"rows": 41}) == 60
    assert list(bindings.bound_jobs(corpus, None, 7, only="no such kernel")) == []


def test_a_source_of_one_kernel_keeps_functions_and_comments() -> None:
    helper = "// A kernel void of meaning (\nfloat twice(float x) { return 2 * x; }\n"
    source = helper + "kernel void a(global float *x) { if (x) { x[0] = twice(1); } }\n" + SOURCE
    found = alone(source, "shift")
    assert helper in found
    assert "void shift" in found
    assert "twice(1)" not in found
    assert "nothing" not in found


def test_every_binding_names_a_project_and_a_kernel_of_its_own() -> None:
    names = [b["kernel"] for b in yaml.safe_load(bindings.BINDINGS.read_text())]
    assert len(set(names)) == len(names)
    assert len({n.rpartition(":")[2] for n in names}) == len(names), "reports tell jobs apart by kernel"
    assert {n.partition("/")[0] for n in names} == {p.name for p in PROJECTS}
