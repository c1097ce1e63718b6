"""What later loops read is fetched before threads wait: the same addresses, or nothing is fetched."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.nvrtc_compile import compile_cuda
from tests.unit.rewrite.test_production_style import check, reason
from warpsmith.domain.job import Job
from warpsmith.rewrite.templater import TemplateReport, make_template

TOP = """
extern "C" __global__ void k(const float* x, const float* w, float* y, int n, int rows) {
  __shared__ float part[1024];
  const float* row = x + blockIdx.x * n;
  float sum = 0.0f;
"""
FIRST = "  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i];\n"
BETWEEN = """  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int j = 0; j < blockDim.x; ++j) sum += part[j];
"""
LAST = """  const int last = n - 1;
  for (int i = threadIdx.x; i <= last; i += blockDim.x) y[blockIdx.x * n + i] = sum * w[i];
}
"""
STRIDED = TOP + FIRST + BETWEEN + LAST.replace("i <= last", "i < last + 1")
ROUNDS = (
    TOP
    + "  const int rounds = (n + blockDim.x - 1) / blockDim.x;\n"
    + FIRST
    + BETWEEN
    + """  for (int r = 0; r < rounds; ++r) {
    const int at = r * blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (at < n) v = w[at];
    if (at < n) y[blockIdx.x * n + at] = sum * v;
  }
}
"""
)


def job_of(source: str, **launch: Any) -> Job:
    fields = {
        "name": "k",
        "kernel": {
            "backend": "cuda",
            "source": source,
            "entry": "k",
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "n"]},
                {"name": "w", "dtype": "float32", "role": "inout", "shape": ["n"]},
                {"name": "y", "dtype": "float32", "role": "output", "shape": ["rows", "n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
            ],
            "launch": {"grid": ["rows"], "block": [32]} | launch,
        },
        "workloads": [{"dimensions": {"rows": 4, "n": 90}}],
    }
    return Job.model_validate(fields)


def fetched(found: TemplateReport) -> str:
    """What is fetched early; empty if nothing is."""
    made = re.search(r"#define WS_EARLY_0 (.*)", found.template.kernel.text)
    return "" if made is None else made.group(1)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            STRIDED,
            "for (int i = threadIdx.x; i < ((int)(n - 1)) + 1; i += blockDim.x) { ws_fetch(&(w)[i]); }",
        ),
        (
            ROUNDS,
            "for (int r = 0; r < rounds; ++r) { if ((((int)(r * blockDim.x + threadIdx.x)) < n)) "
            "ws_fetch(&(w)[((int)(r * blockDim.x + threadIdx.x))]); }",
        ),
    ],
    ids=["strided", "rounds"],
)
def test_what_a_later_loop_reads_is_fetched(source: str, text: str, tmp_path: Path) -> None:
    job = job_of(source)
    found = make_template(job)
    assert fetched(found) == text
    assert found.template.kernel.text.index("WS_EARLY_0;") < found.template.kernel.text.index("sum += row[i]")
    early = found.template.configured({**found.template.space.defaults, "WS_EARLY": 1})
    assert compile_cuda(early.source, "k") == ""
    assert check(found, job, tmp_path) > 5


def test_it_is_part_of_a_body_that_keeps_a_row() -> None:
    source = STRIDED.replace("sum * w[i]", "row[i] * sum * w[i]").replace("i < last + 1", "i < n")
    found = make_template(job_of(source))
    names = {p.name for p in found.template.space.parameters}
    assert {"WS_EARLY", "WS_KEEP"} <= names
    excluded = [
        c.expression.text for c in found.template.space.constraints if "WS_EARLY" in c.expression.text
    ]
    assert excluded == []
    assert found.template.kernel.text.count("WS_EARLY_0;") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum * w[i];", "sum * w[i]; w[0] = sum;"),
        ("const float* w", "const volatile float* w"),
        ("sum * w[i];", "sum * w[(int)row[i]];"),
        ("sum * w[i];", "sum > 0.0f ? w[i] : sum;"),
        ("sum * w[i];", "i < rows && w[i] > 0.0f;"),
        ("sum * w[i];", "sum * w[blockIdx.x * n + i];"),
        ("sum += row[i];", "sum += row[i] * w[i];"),
        ("  const int last", "  if (sum > 9.0f) return;\n  const int last"),
        ("  const int last", "  w += 1;\n  const int last"),
        ("  const int last", "  n -= 1;\n  const int last"),
        ("  for (int i = threadIdx.x; i < last", "  if (sum > 9.0f)\n  for (int i = threadIdx.x; i < last"),
        ("const int last = n - 1", "const int last = (int)sum"),
        ("sum * w[i];", "sum * w[(int)sum + i];"),
    ],
    ids=[
        "written",
        "volatile",
        "gathered",
        "chosen",
        "and",
        "of a block",
        "read before",
        "left before",
        "moved",
        "other bound",
        "conditional",
        "bound from a sum",
        "place from a sum",
    ],
)
def test_what_may_lie_elsewhere_is_not_fetched(old: str, new: str) -> None:
    assert old in STRIDED
    found = make_template(job_of(STRIDED.replace(old, new, 1)))
    assert fetched(found) == ""
    assert reason(found, "early_reads")


def test_a_single_loop_is_left_alone() -> None:
    found = make_template(job_of(TOP + LAST.replace("i <= last", "i < n")))
    assert fetched(found) == ""
