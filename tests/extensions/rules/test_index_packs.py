"""Packs of neighbouring elements: right for every number of elements, and reasons to decline."""

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.rules.test_production_style import check, names, reason
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.extensions.rules.templater import make_template

HEAD = """
extern "C" __global__ void k(const float* x, const float* w, float* y, int n, int m, long long total) {
"""
ROUND = """
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) { return; }
  int a = i / (n * m);
  int rest = i % (n * m);
  int b = rest / m;
  rest = rest % m;
  int from = (b * 2 * m) + (a * n * m) % (n * m) + rest;
  y[i] = __ldg(&x[from % total]) + w[b % 3];
}
"""
TURNED = """
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < total) {
    const int row = i / m, column = i % m;
    const float v = w[row % 5];
    y[(row % 2 == 0 ? row : row) * m + column] = i % 7 == 0 ? x[i] : x[i] * v;
  }
}
"""
GATED = """
  const int64_t i = int64_t(blockDim.x) * blockIdx.x + threadIdx.x;
  if (i >= total) return;
  const int64_t wide = m, j = (i / wide) * wide + (i % wide);
  const int64_t other = n == m ? j : (i / m) * m + (i % m);
  y[i] = x[j] / (1.0f + fabsf(w[other])) + y[i];
}
"""


def job_of(body: str, head: str = HEAD, n: int = 6, m: int = 16, grid: str = "", **launch: Any) -> Job:
    """A kernel of one element a thread."""
    fields = {
        "name": "k",
        "kernel": {
            "backend": "cuda",
            "source": head + body,
            "entry": "k",
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["n * m * 3"]},
                {"name": "w", "dtype": "float32", "role": "input", "shape": ["n * m * 3"]},
                {"name": "y", "dtype": "float32", "role": "inout", "shape": ["n * m * 3"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                {"name": "m", "dtype": "int32", "role": "scalar", "value": "m"},
                {"name": "total", "dtype": "int64", "role": "scalar", "value": "n * m * 3"},
            ],
            "launch": {"grid": [grid or "ceil_div(n * m * 3, 64)"], "block": [64]} | launch,
        },
        "workloads": [{"dimensions": {"n": n, "m": m}}],
    }
    return Job.model_validate(fields)


def report(body: str, **launch: Any) -> TemplateReport:
    """What the rules make of it."""
    return make_template(job_of(body, **launch))


@pytest.mark.parametrize("shape", [(6, 16), (5, 13), (1, 4), (7, 6)], ids=["whole", "odd", "few", "pairs"])
@pytest.mark.parametrize("body", [ROUND, TURNED, GATED], ids=["round", "turned", "gated"])
def test_every_pack_computes_what_the_kernel_does(body: str, shape: tuple[int, int], tmp_path: Path) -> None:
    job = job_of(body, n=shape[0], m=shape[1])
    found = make_template(job)
    assert "WS_PACK" in names(found)
    assert check(found, job, tmp_path) > 3


def test_neighbours_are_loaded_together_and_what_they_share_once() -> None:
    assert "ws_pack_load(ws_to_" in report(GATED).template.kernel.text
    text = report(TURNED).template.kernel.text
    assert "const auto ws_same_0 = w[row % 5];" in text
    assert "if ((m) % WS_PACK == 0) {" in text


def test_what_is_read_under_a_condition_is_left_to_its_lane() -> None:
    text = report(TURNED.replace("* v;", "* v; y[i] += 0.0f;")).template.kernel.text
    assert "ws_pack" not in text
    lane = report(TURNED).template.kernel.text
    assert "i % 7 == 0 ? x[i] : x[i] * v" in lane


def test_divisions_of_64_bits_become_32_if_their_operands_fit() -> None:
    text = report(GATED).template.kernel.text
    assert "(unsigned)(i) / (unsigned)(wide)" in text
    assert "(unsigned long long)(i) < 0x80000000ull" in text
    assert "(unsigned)(" not in report(ROUND.replace("int64_t", "int")).template.kernel.text


def test_elements_beyond_the_grid_of_the_job_stay_untouched() -> None:
    constraints = report(ROUND, grid="n * m * 3 // 64").template.space.constraints
    assert any("% WS_PACK == 0" in c.expression.text for c in constraints)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (ROUND.replace("if (i >= total) { return; }", ""), "no check keeps elements"),
        (ROUND.replace("y[i] =", "y[i * 2 % total] ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "if (b > 1) y[i] = 0; y[i] ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "y[(i + 1) / m] ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "y[i] = y[rest]; y[i] ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "y[i / m] ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "float* p = y + i; *p ="), "is not at neighbouring elements"),
        (ROUND.replace("y[i] =", "if (x[i] < 0) return; y[i] ="), "may be left early"),
        (ROUND.replace("y[i] =", "__shared__ float s[64]; s[0] = 1; y[i] ="), "shared memory"),
        (ROUND.replace("y[i] =", "atomicAdd(y + i, 1.0f); y[i] ="), "would not be independent"),
        (ROUND.replace("y[i] =", "y[i] = threadIdx.x; y[i] ="), "also reads a thread's place"),
        (ROUND.replace("int a =", "i += 1; int a ="), "is changed"),
        (ROUND.replace("int a =", "m += 1; int a ="), "is changed"),
        (ROUND.replace("w[b % 3];", "w[b % 3];\n#if n\n  y[i] = 0;\n#endif"), "a preprocessor condition"),
        (ROUND.replace("int rest", "short rest"), ""),
    ],
)
def test_index_packs_decline(body: str, why: str) -> None:
    found = report(body)
    said = reason(found, "index_packs")
    assert why in said
    assert ("WS_PACK" in names(found)) is (why == "")


def test_a_launch_of_two_axes_is_left() -> None:
    assert "more than one axis" in reason(report(ROUND, block=[64, 2]), "index_packs")


def test_fast_mathematics_is_part_of_every_body(tmp_path: Path) -> None:
    job = job_of(GATED.replace("fabsf(w[other])", "expf(-fabsf(w[other]))"))
    found = make_template(job).template
    assert found.kernel.text.count("WS_EXPF(") >= 4
    assert not any("WS_FAST_MATH ==" in c.expression.text for c in found.space.constraints)
    assert check(make_template(job), job, tmp_path) > 5


def test_where_packs_are_compiled_other_parameters_keep_their_defaults() -> None:
    template = report(ROUND).template
    texts = [c.expression.text for c in template.space.constraints]
    assert "WS_ITEMS == 1 or not (WS_PACK > 1)" in texts
    assert " if WS_PACK > 1 else " in template.kernel.launch.grid[0].text
