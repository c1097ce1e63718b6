"""Kernels of one guarded element a work-item, as people write them: right on every size."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from testbed.repetitions import repetitions
from tests.extensions.rules.test_opencl import CONFIGURATIONS, FEWEST
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.space import Configuration, allows
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.testing.jobs import DEVICE

SIZES = ((1, 1), (5, 3), (67, 41), (64, 32))
"""Columns and rows: one element, less than a block, odd, and whole blocks."""


@dataclass(frozen=True)
class Written:
    """A kernel in somebody's style, and what it computes."""

    source: str
    reference: str
    """Of inputs a, b [rows, cols] and out, to `want`."""
    block: tuple[int, ...] = (16,)
    grid: tuple[str, ...] = ("cols",)
    parameters: frozenset[str] = frozenset({"WS_ITEMS", "WS_NEAR"})
    sizes: tuple[tuple[int, int], ...] = SIZES


HEAD = "__kernel void k(__global const {t} *a, __global const {t} *b, __global {t} *out, int cols, int rows)"
TYPED = "typedef float DATA_TYPE;\n" + HEAD.format(t="DATA_TYPE") + "\n"
PLAIN = HEAD.format(t="float") + " {\n"
FIRST_ROW = "want = out.copy(); want[0] = "
FLAT = "(get_group_id(0) + get_group_id(1)*get_num_groups(0)) * get_local_size(0) + get_local_id(0)"
TWO = frozenset({"WS_ITEMS_X", "WS_ITEMS_Y", "WS_NEAR_X", "WS_NEAR_Y"})
CHECKED = "  int j = get_global_id(0);\n  int i = get_global_id(1);\n  if ((i < rows) && (j < cols))\n"

KERNELS = {
    "guard": Written(
        PLAIN + "  int i = get_global_id(0);\n  if (i < cols) { out[i] = a[i] * 2.0f + b[i]; }\n}\n",
        FIRST_ROW + "a[0] * 2 + b[0]",
    ),
    "early_return": Written(
        PLAIN + "  const size_t i = get_global_id(0);\n  if (i >= (size_t)cols) return;\n"
        "  if (a[i] > 0) { out[i] = a[i]; return; }\n  out[i] = b[i];\n}\n",
        FIRST_ROW + "np.where(a[0] > 0, a[0], b[0])",
    ),
    "return_in_a_loop": Written(
        PLAIN + "  int i = get_global_id(0);\n  if (i >= cols) return;\n"
        "  for (int k = 0; k < rows; k++) if (a[k * cols + i] > 0) { out[i] = k; return; }\n"
        "  out[i] = -1;\n}\n",
        FIRST_ROW + "np.where((a > 0).any(0), (a > 0).argmax(0), -1)",
    ),
    "no_guard": Written(
        PLAIN + "  out[get_global_id(0)] = a[get_global_id(0)] - b[get_global_id(0)];\n}\n",
        FIRST_ROW + "a[0] - b[0]",
        sizes=((16, 1), (64, 2), (48, 1), (160, 3)),
    ),
    "flat_group_index": Written(
        PLAIN + f"  int index = {FLAT};\n  if (index >= cols) return;\n  out[index] += a[index];\n}}\n",
        FIRST_ROW + "out[0] + a[0]",
    ),
    "index_taken_apart": Written(
        PLAIN + f"  int id = {FLAT};\n  if (id >= cols * rows) return;\n  int j = id % cols;\n  id /= cols;\n"
        "  int i = id % rows;\n  out[i * cols + j] = a[i * cols + j] + i;\n}\n",
        "want = a + np.arange(a.shape[0])[:, None]",
        grid=("rows * cols",),
    ),
    "groups_and_threads": Written(
        "#define THREADS 16\n" + PLAIN + "  int bx = get_group_id(0);\n  int tx = get_local_id(0);\n"
        "  int ei = (bx*THREADS)+tx;\n  int row;\n  row = ei;\n"
        "  if(ei<cols){ out[ei] = a[row]*b[ei]; }\n}\n",
        FIRST_ROW + "a[0] * b[0]",
        parameters=frozenset({"WS_ITEMS"}),
    ),
    "offset_index": Written(
        PLAIN + "  int i = get_global_id(0) + 1;\n  if (i < cols) out[i] = a[i - 1];\n}\n",
        "want = out.copy(); want[0, 1:] = a[0, :-1]",
    ),
    "pointers": Written(
        PLAIN + "  int i = get_global_id(0);\n  if (i < cols) {\n    __global const float *p = a + i;\n"
        "    global float* q = out+i;\n    for (int k = 0; k < 3; k++) *q = *p + k;\n  }\n}\n",
        FIRST_ROW + "a[0] + 2",
    ),
    "names_used_again": Written(
        PLAIN + "  int index = get_global_id(0);\n  if (index >= cols) return;\n  int i = index;\n"
        "  float sum = 0;\n  for (int k = 0; k < rows; ++k) {\n    int index = k * cols + i;\n"
        "    sum += a[index];\n  }\n  for (int k = 0; k < rows; ++k) {\n    int index = k * cols + i;\n"
        "    float sum2 = b[index] * sum;\n    out[index] = sum2;\n  }\n}\n",
        "want = b * a.sum(0)",
    ),
    "gridwide": Written(
        PLAIN + "  for (int i = get_global_id(0); i < cols; i += get_global_size(0)) out[i] = a[i];\n}\n",
        FIRST_ROW + "a[0]",
    ),
    "column_sums": Written(
        TYPED
        + "{\n  int j = get_global_id(0);\n\n  if (j < cols)\n  {\n    DATA_TYPE sum = 0.0;\n    int i;\n"
        "    for (i = 0; i < rows; i++)\n      sum += a[i*cols + j];\n    out[j] = sum / rows;\n"
        "    for (i = 0; i < rows; i++) out[j] -= b[i * cols + j] * sum;\n  }\n}\n",
        FIRST_ROW + "a.mean(0) - (b * a.sum(0)).sum(0)",
    ),
    "product_2d": Written(
        TYPED + "{\n" + CHECKED + "  {\n    int k;\n    out[i * cols + j] *= 0.5f;\n"
        "    for (k = 0; k < rows; k++)\n"
        "      out[i * cols + j] += a[i * cols + k % cols] * b[k * cols + j];\n  }\n}\n",
        "r, c = a.shape; want = 0.5 * out + a[:, np.arange(r) % c] @ b",
        block=(8, 4),
        grid=("cols", "rows"),
        parameters=TWO,
    ),
    "stencil_2d": Written(
        TYPED + "{\n  int j = get_global_id(0), i = get_global_id(1);\n  DATA_TYPE c1, c2;\n"
        "  c1 = 0.25; c2 = 0.5;\n"
        "  if ((i < rows-1) && (j < (cols - 1)) && (i > 0) && (j > 0))\n"
        "    out[i*cols + j] = c1 * a[i*cols + j-1] + c2 * a[(i-1)*cols + j] + a[(i+1)*cols + (j+1)];\n}\n",
        "want = out.copy(); want[1:-1, 1:-1] = .25 * a[1:-1, :-2] + .5 * a[:-2, 1:-1] + a[2:, 2:]",
        block=(8, 4),
        grid=("cols", "rows"),
        parameters=TWO,
    ),
    "accumulators_2d": Written(
        PLAIN + "  size_t x = get_global_id(0), y = get_global_id(1);\n"
        "  if (x >= cols) return;\n  if (y >= rows) return;\n"
        "  float low = 1e30f, high;\n  high = -1e30f;\n  const int last = rows - 1;\n"
        "  for (int k = 0; k <= last; ++k) {\n    const int at = k * cols + x;\n"
        "    float v = a[at];\n    if (v < low) low = v;\n"
        "    for (int l = 0; l < 2; l++) high = fmax(high, v + l * b[at]);\n"
        "  }\n  out[y * cols + x] = (high - low) * y;\n}\n",
        "want = (np.maximum(a, a + b).max(0) - a.min(0)) * np.arange(a.shape[0])[:, None]",
        block=(4, 4),
        grid=("cols", "rows"),
        parameters=TWO,
    ),
}


def job_of(kernel: Written) -> Job:
    shape = ["rows", "cols"]
    buffer: dict[str, Any] = {"dtype": "float32", "shape": shape}
    reference = (
        "import numpy as np\ndef reference(inputs, dims):\n"
        "    a, b, out = (inputs[n] for n in ('a', 'b', 'out'))\n"
        f"    {kernel.reference}\n    return {{'out': want}}\n"
    )
    return Job.model_validate(
        {
            "name": "k",
            "kernel": {
                "backend": "opencl",
                "source": kernel.source,
                "entry": "k",
                "arguments": [
                    {"name": "a", "role": "input", **buffer},
                    {"name": "b", "role": "input", **buffer},
                    {"name": "out", "role": "inout", **buffer},
                    {"name": "cols", "dtype": "int32", "role": "scalar", "value": "cols"},
                    {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
                ],
                "launch": {
                    "grid": [f"ceil_div({n}, {b})" for n, b in zip(kernel.grid, kernel.block, strict=True)],
                    "block": list(kernel.block),
                },
            },
            "workloads": [{"dimensions": {"cols": c, "rows": r}} for c, r in kernel.sizes],
            "reference": {"kind": "numpy", "source": reference},
            "tolerances": {"out": {"rtol": 1e-4, "atol": 1e-3}},
        }
    )


def drawn(template: Template, workloads: tuple[Workload, ...]) -> list[tuple[Configuration, Workload]]:
    """The default and a few configurations, each on every workload that allows it."""
    rng = random.Random(len(workloads))
    tried = [dict(template.space.defaults)]
    found: list[tuple[Configuration, Workload]] = []
    used = 0
    while used < repetitions(CONFIGURATIONS, FEWEST) and len(tried) < 400:
        scope = {**DEVICE.scope(), **tried[-1]}
        allowed = [w for w in workloads if allows(template.space.constraints, scope | w.scope()) is None]
        found += [(tried[-1], w) for w in allowed]
        used += bool(allowed)
        tried.append({p.name: rng.choice(p.values) for p in template.space.parameters})
    return found


@pytest.mark.parametrize("style", KERNELS)
def test_elements_are_right_on_every_size(style: str, tmp_path: Path) -> None:
    job = job_of(KERNELS[style])
    template = make_template(job).template
    assert KERNELS[style].parameters <= {p.name for p in template.space.parameters}
    chosen = drawn(template, job.workloads)
    assert len({w.key for _, w in chosen}) == len(job.workloads)
    cases = [OpenClCase(style, job, template.configured(c), w) for c, w in chosen]
    assert run_opencl(cases, tmp_path) == []


@pytest.mark.parametrize("style", ["column_sums", "product_2d", "accumulators_2d"])
def test_a_loop_that_all_elements_share_is_run_once_for_all_of_them(style: str) -> None:
    text = make_template(job_of(KERNELS[style])).template.kernel.text
    assert "if (ws_full) {" in text
    tree = text[text.index("if (ws_full) {") : text.index("return;", text.index("if (ws_full) {"))]
    assert tree.index("for (int ws_item", tree.index("rows")) > tree.index("rows")


@pytest.mark.parametrize(
    "statement",
    [
        "for (int k = 0; k < i; k++) out[i] += a[k];",
        "for (int k = 0; k < rows; k++) { if (a[k] > 3) break; out[i] += a[k]; }",
        "for (int k = 0; k < (int)a[0]; k++) out[i] += a[k];",
        "int k = 0; while (k < rows) { out[i] += a[k]; k++; }",
        "int k; for (k = 0; k < rows; k++) { out[i] += a[k]; if (b[k] > 0) k++; }",
    ],
)
def test_a_loop_that_may_differ_between_elements_is_left_to_each(statement: str) -> None:
    source = (
        PLAIN + "  int i = get_global_id(0);\n  if (i < cols) {\n  out[i] = 0;\n  " + statement + "\n  }\n}\n"
    )
    text = make_template(job_of(Written(source, "want = out"))).template.kernel.text
    if "if (ws_full) {" in text:
        full = text[text.index("if (ws_full) {") :]
        assert full.index("for (int ws_item") < full.index(statement.split(";", maxsplit=1)[0][:12])


def test_a_block_is_not_enlarged_beyond_elements_that_nothing_guards() -> None:
    job = job_of(KERNELS["no_guard"])
    space = make_template(job).template.space
    scope = {**DEVICE.scope(), "cols": 48, "rows": 1} | space.defaults
    assert allows(space.constraints, scope) is None
    assert allows(space.constraints, scope | {"WS_BLOCK": 512}) is not None


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("typedef float fp;\n", "(fp)(a[i] + 1)"),
        ("#define fp float // of this file\n", "(fp)(a[i] + 1)"),
        ("", "((float4)(a[i], 1, 2, 3)).x"),
    ],
)
def test_a_cast_is_no_call_of_something_unknown(head: str, value: str) -> None:
    source = head + PLAIN + f"  int i = get_global_id(0);\n  if (i < cols) out[i] = {value};\n}}\n"
    report = make_template(job_of(Written(source, "want = out")))
    assert "WS_ITEMS" in {p.name for p in report.template.space.parameters}


def test_a_function_in_parentheses_is_a_call() -> None:
    source = PLAIN + "  int i = get_global_id(0);\n  if (i < cols) out[i] = (other)(a[i]);\n}\n"
    report = make_template(job_of(Written(source, "want = out")))
    assert any("it calls (other)" in d.reason for d in report.declined)
