"""A rule that cannot prove its precondition declines, and says why."""

from typing import Any, get_args

import pytest

from warpsmith.domain.jobs.job import Job, RuleName
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.template import without_definitions
from warpsmith.extensions.rules.catalogue import ALL_RULES
from warpsmith.extensions.rules.templater import make_template

HEAD = 'extern "C" __global__ void k(const float* x, float* y, int n) {\n'
ROW = "  const float* a = x + (size_t)blockIdx.x * n;\n  float* b = y + (size_t)blockIdx.x * n;\n"
STRIDE = "for (int i = threadIdx.x; i < n; i += blockDim.x)"


def report(
    body: str,
    head: str = HEAD,
    workload: dict[str, int] | None = None,
    deny: tuple[str, ...] = (),
    **launch: Any,
) -> TemplateReport:
    """What the rules make of a CUDA kernel over rows, those of `deny` left out."""
    return make_template(over_rows(body, head, workload, deny, **launch))


def over_rows(
    body: str,
    head: str = HEAD,
    workload: dict[str, int] | None = None,
    deny: tuple[str, ...] = (),
    **launch: Any,
) -> Job:
    """A job with a CUDA kernel over rows."""
    fields = {
        "name": "k",
        "kernel": {
            "backend": "cuda",
            "source": head + body + "}\n",
            "entry": "k",
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "n"]},
                {"name": "y", "dtype": "float32", "role": "output", "shape": ["rows", "n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            ],
            "launch": {"grid": ["rows"], "block": [128]} | launch,
        },
        "workloads": [{"dimensions": workload or {"rows": 4, "n": 128}}],
        "rewrite": {"deny": deny},
    }
    return Job.model_validate(fields)


def reason(found: TemplateReport, rule: str) -> str:
    """Why a rule declined; empty where it was applied."""
    return next((d.reason for d in found.declined if d.rule == rule), "")


def names(found: TemplateReport) -> set[str]:
    """Parameters of the template."""
    return {p.name for p in found.template.space.parameters}


def test_independent_rows_are_split_and_packed() -> None:
    found = report(ROW + f"  {STRIDE} b[i] = 2.0f * a[i];\n")
    assert {"WS_BLOCK", "WS_ROW_SPLIT", "WS_VEC", "WS_UNROLL"} <= names(found)
    assert [e.text for e in found.template.kernel.launch.grid] == ["ceil_div(rows, WS_ROWS)", "WS_ROW_SPLIT"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"  float s = 0;\n  {STRIDE} s += a[i];\n  b[threadIdx.x] = s;\n", "s carries a value"),
        (f"  __shared__ float t[128];\n  {STRIDE} b[i] = a[i];\n", "shared memory (t)"),
        (f"  {STRIDE} b[i] = a[i];\n  __syncthreads();\n", "__syncthreads"),
        (f"  {STRIDE} atomicAdd(&b[i % 7], a[i]);\n", "atomicAdd"),
        (f"  {STRIDE} {{ if (a[i] > 3.0f) break; b[i] = a[i]; }}\n", "(break)"),
        (f"  {STRIDE} {{ if (a[i] > 3.0f) return; b[i] = a[i]; }}\n", "(return)"),
        (f"  {STRIDE} b[0] = a[i];\n", "in every iteration"),
        (f"  float* c = b + 1;\n  {STRIDE} b[i] = c[i] + a[i];\n", "uses c[i] of the same buffer"),
        (f"  {STRIDE} b[i] = a[i] + b[i + 1];\n", "uses b[i+1] of the same buffer"),
        (f"  {STRIDE} b[i] = other(a[i]);\n", "other, whose definition is not in the source"),
        (f"  {STRIDE} b[i] = a[i];\n  b[0] = b[1];\n", "is read outside of the loops"),
        (
            f"  {STRIDE} b[i] = a[i];\n  {STRIDE} b[i] = b[i] + 1.0f;\n",
            "written by one loop and read by another",
        ),
        (f"  {STRIDE} b[i] = a[i] + gridDim.x;\n", "reads the size of the grid"),
        ('  asm volatile("bar.sync 0;");\n' + f"  {STRIDE} b[i] = a[i];\n", "inline assembly"),
        ("  b[threadIdx.x] = a[threadIdx.x];\n", "no loop of the form"),
    ],
)
def test_row_split_declines(body: str, why: str) -> None:
    found = report(ROW + body)
    assert why in reason(found, "row_split")
    assert "WS_ROW_SPLIT" not in names(found)


def test_row_split_takes_z_where_y_is_used_and_declines_without_a_free_axis() -> None:
    body = ROW.replace("blockIdx.x", "(blockIdx.x + blockIdx.y)") + f"  {STRIDE} b[i] = a[i];\n"
    grid = [e.text for e in report(body, grid=["rows", 2]).template.kernel.launch.grid]
    assert grid == ["ceil_div(rows, WS_ROWS)", "ceil_div(2, WS_ITEMS)", "WS_ROW_SPLIT"]
    full = body.replace("blockIdx.y", "blockIdx.y + blockIdx.z")
    assert "grid y and z" in reason(report(full, grid=["rows", 2, 2]), "row_split")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"  {STRIDE} b[i] = a[i * 2];\n  b[n] = 0;\n", "y is used elsewhere"),
        (f"  float s = 0;\n  {STRIDE} {{ s = a[i] - s; b[i] = s; }}\n", "s carries a value"),
        (f"  {STRIDE} {{ if (a[i] > 3.0f) continue; b[i] = a[i]; }}\n", "may end early (continue)"),
        (f"  {STRIDE} b[3 * i] = a[n - i];\n", "no contiguous loads or stores"),
        (
            "  for (int i = threadIdx.x; i < n; i += blockDim.x) { b[i] = a[i]; n = n - 1; }\n",
            "n carries a value",
        ),
        (f"  {STRIDE} b[i] = a[i];\n  {STRIDE} b[i] += a[2 * i];\n", "no barrier lies between"),
    ],
)
def test_vector_width_declines(body: str, why: str) -> None:
    found = report(ROW + body)
    assert why in reason(found, "vector_width")
    assert "WS_VEC" not in names(found)


def test_loads_under_a_condition_stay_single() -> None:
    found = report(ROW + f"  {STRIDE} b[i] = i > 5 ? a[i] : 0.0f;\n").template.kernel.text
    assert "ws_load(&a" not in found
    assert "ws_store(&b[ws_first], ws_pack_0)" in found


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("  y[blockIdx.x * 128 + threadIdx.x] = 0.0f;\n", "never reads how many threads"),
        (
            "  __shared__ float t[128];\n  t[threadIdx.x] = x[0];\n  if (blockDim.x) y[0] = t[1];\n",
            "not indexed by warp",
        ),
        (ROW + f"  if (threadIdx.x < 64) b[0] = 1;\n  {STRIDE} b[i] = a[i];\n", "compares the thread index"),
        (
            "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  y[i] = x[i];\n",
            "cannot follow",
        ),
    ],
)
def test_block_size_declines(body: str, why: str) -> None:
    assert why in reason(report(body), "block_size")


def test_a_constant_that_may_be_computed_with_is_left() -> None:
    found = report(ROW + f"  {STRIDE} b[i] = GAIN * a[i];\n", head="#define GAIN 4\n" + HEAD)
    assert "GAIN: its use in" in reason(found, "lift_constants")
    radius = "  for (int r = 0; r < RADIUS; ++r) y[r] = x[r];\n"
    found = report(radius, head="#define RADIUS 4\n" + HEAD)
    assert "RADIUS: it may be part of what the kernel computes" in reason(found, "lift_constants")


def test_fast_math_needs_room_in_the_tolerance() -> None:
    job = Job.model_validate(
        {
            "name": "k",
            "kernel": {
                "backend": "cuda",
                "source": HEAD + ROW + f"  {STRIDE} b[i] = expf(a[i]);\n}}\n",
                "entry": "k",
                "arguments": [
                    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
                    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
                    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                ],
                "launch": {"grid": [1], "block": [128]},
            },
            "workloads": [{"dimensions": {"n": 128}}],
            "tolerances": {"y": {"rtol": 1e-6, "atol": 0}},
        }
    )
    assert "below 0.0001" in reason(make_template(job), "fast_math")


def test_the_users_parameters_are_kept_and_rules_can_be_switched_off() -> None:
    fields = report(ROW + f"  {STRIDE} b[i] = a[i];\n").template
    assert fields.space.parameters
    source = HEAD + ROW + f"  {STRIDE} b[i] = MINE * a[i];\n}}\n"
    job = Job.model_validate(
        {
            "name": "k",
            "kernel": fields.kernel.model_copy(update={"source": source}).model_dump()
            | {"launch": {"grid": ["rows"], "block": [128]}},
            "workloads": [{"dimensions": {"rows": 4, "n": 128}}],
            "parameters": [{"name": "MINE", "values": [1, 2]}],
            "rewrite": {"enabled": False},
        }
    )
    assert [p.name for p in make_template(job).template.space.parameters] == ["MINE"]
    allowed = job.model_copy(update={"rewrite": job.rewrite.model_copy(update={"enabled": True})})
    found = make_template(allowed).template.space.parameters
    assert found[0].name == "MINE" and len(found) > 1


def test_an_unknown_entry_declines_everywhere() -> None:
    found = report("  y[0] = x[0];\n", head=HEAD.replace(" k(", " other("))
    assert all("0 definitions of kernel 'k'" in d.reason for d in found.declined)
    assert {d.code for d in found.declined} == {DeclineCode.UNREADABLE}


@pytest.mark.parametrize(
    ("body", "rule", "code"),
    [
        ("  y[0] = x[0];\n", "vector_width", DeclineCode.FORM),
        (f"  __shared__ float t[64];\n  {STRIDE} b[i] = a[i];\n", "row_split", DeclineCode.DEPENDENCE),
        (
            f"  int ws_body = 0;\n  {STRIDE} b[i] = a[i];\n",
            "fixed_scalars",
            DeclineCode.NAME_TAKEN,
        ),
        ("  y[0] = x[0];\n", "fixed_scalars", DeclineCode.NO_GAIN),
        ("  y[0] = x[0];\n", "restrict", DeclineCode.NOT_PERMITTED),
    ],
)
def test_a_refusal_has_its_kind(body: str, rule: str, code: DeclineCode) -> None:
    found = report(ROW + body, deny=("restrict",))
    assert [d.code for d in found.declined if d.rule == rule] == [code]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"  __shared__ float t[64];\n  {STRIDE} b[i] = a[i];\n", "shared memory (t)"),
        (f"  {STRIDE} b[i] = a[i];\n  __syncthreads();\n", "__syncthreads"),
        (f"  {STRIDE} b[i] = a[i] + threadIdx.y;\n", "the block's other axes"),
        (f"  {STRIDE} b[i] = a[i] + gridDim.x;\n", "more of the grid"),
        ("  b[threadIdx.x] = a[threadIdx.x];\n", "no loop of the form"),
        ("  for (int i = threadIdx.x; i < 64; i += blockDim.x) b[i] = a[i];\n", "how long a row is, `64`"),
    ],
)
def test_rows_per_block_declines(body: str, why: str) -> None:
    found = report(ROW + body)
    assert why in reason(found, "rows_per_block")
    assert "WS_ROWS" not in names(found)


def test_rows_per_block_declines_for_long_rows_and_for_a_callee_that_reads_the_block() -> None:
    long = report(ROW + f"  {STRIDE} b[i] = a[i];\n", workload={"rows": 4, "n": 4096})
    assert "1024 elements or more" in reason(long, "rows_per_block")
    head = "__device__ int row() { return blockIdx.x; }\n" + HEAD
    called = report(ROW + f"  {STRIDE} b[i] = a[i] + row();\n", head)
    assert "calls reads the block's index" in reason(called, "rows_per_block")


def test_short_rows_share_a_block() -> None:
    launch = report(ROW + f"  {STRIDE} b[i] = 2.0f * a[i];\n").template.kernel.launch
    assert [e.text for e in launch.block] == ["WS_BLOCK", "WS_ROWS"]
    assert launch.grid[0].text == "ceil_div(rows, WS_ROWS)"


def test_every_rule_can_be_named_in_a_job() -> None:
    assert [rule.name for rule in ALL_RULES] == list(get_args(RuleName))


def test_a_definition_in_the_source_gives_way_to_the_users_parameter() -> None:
    source = "#define BLOCK 64 // threads\n#define BLOCKS(n) \\\n  ((n) / BLOCK)\nint x = BLOCK;\n"
    kept = without_definitions(source, ["BLOCK"])
    assert "BLOCK 64" not in kept
    assert "#define BLOCKS(n) \\\n  ((n) / BLOCK)\nint x = BLOCK;\n" in kept


def test_a_template_parameter_with_a_default_is_lifted_from_its_place_in_the_entry() -> None:
    body = "{ int row = blockIdx.x * TOKENS + threadIdx.x / 32; if (row < n) y[row] = x[row]; }\n"
    kernel: dict[str, Any] = {
        "backend": "cuda",
        "source": "template <class T, int TOKENS = 4> __global__ void k(const T* x, T* y, int n) " + body,
        "entry": "k<float, 4>",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": ["ceil_div(n, 4)"], "block": [128]},
    }
    job = Job.model_validate({"name": "k", "kernel": kernel, "workloads": [{"dimensions": {"n": 128}}]})
    assert make_template(job).template.kernel.entry == "k<float,WS_TOKENS>"
