"""Tiles in registers and local memory: right on every shape, and every reason to decline."""

from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.element_kernels import COLUMNS, PRODUCT, PRODUCT_RETURN, ROWS, product_job, times_job
from tests.nvrtc_compile import compile_cuda
from tests.unit.rewrite.test_declines import reason
from tests.unit.rewrite.test_opencl import feasible
from warpsmith.domain.job import Job
from warpsmith.rewrite.templater import make_template

GUARD = "if ((i < rows) && (j < columns))"
LOOP = "for (k = 0; k < inner; k++)"
UPDATE = "c[i * columns + j] += 2.0f * a[i * inner + k] * b[k * columns + j];"


def problems(job: Job, folder: Path, count: int) -> list[str]:
    """What is wrong with the defaults and random configurations of a job's template, on PoCL."""
    template = make_template(job).template
    cases = [
        OpenClCase(job.name, job, template.configured(c), w)
        for n, w in enumerate(job.workloads)
        for c in feasible(template, w, seed=n, count=count)
    ]
    return run_opencl(cases, folder)


@pytest.mark.parametrize("source", [PRODUCT, PRODUCT_RETURN])
def test_products_are_right_with_any_tile(source: str, tmp_path: Path) -> None:
    job = product_job(source)
    found = make_template(job)
    assert {"WS_TILE_X", "WS_TILE_Y", "WS_STAGE"} <= set(found.template.space.defaults), found.declined
    assert problems(job, tmp_path, 9) == []


@pytest.mark.parametrize("source", [ROWS, COLUMNS])
def test_several_rows_of_a_thread_are_right(source: str, tmp_path: Path) -> None:
    job = times_job(source)
    found = make_template(job)
    assert "WS_TILE_X" in found.template.space.defaults, found.declined
    assert problems(job, tmp_path, 5) == []


def test_a_stage_is_right_in_a_block_that_reaches_over_the_bounds(tmp_path: Path) -> None:
    job = times_job(ROWS, [{"rows": 37, "columns": 48}, {"rows": 300, "columns": 33}])
    template = make_template(job).template
    cases = [
        OpenClCase(job.name, job, template.configured(template.space.defaults | chosen), w)
        for w in job.workloads
        for chosen in (
            {"WS_BLOCK": 128, "WS_STAGE": 32},
            {"WS_BLOCK": 256, "WS_STAGE": 8},
            {"WS_BLOCK": 64, "WS_STAGE": 16, "WS_TILE_X": 2, "WS_SPREAD": 1},
        )
    ]
    assert run_opencl(cases, tmp_path) == []


def test_a_struct_is_kept_in_registers_as_well(tmp_path: Path) -> None:
    text = ROWS.replace(
        "typedef float DATA;", "typedef float DATA;\ntypedef struct { float twice, more; } Pair;"
    )
    text = text.replace("int j;", "int j;\n        Pair by; by.twice = 2.0f; by.more = 0.0f;")
    text = text.replace("y[i] = 2 * y[i];", "y[i] = by.twice * y[i] + by.more;")
    job = times_job(text, rewrite={"allow": ["register_sum", "register_tile"]})
    assert "Pair ws_keep_by" in make_template(job).template.kernel.text
    assert problems(job, tmp_path, 6) == []


def test_what_follows_from_a_value_that_changes_is_kept_and_not_made_again(tmp_path: Path) -> None:
    made = "float one;\n set(&one);\n float two = one + one;\n float four = two + two;"
    text = ROWS.replace("__kernel", "inline void set(float *to) { *to = 1.0f; }\n__kernel")
    text = text.replace("int j;", f"int j;\n {made}").replace("* x[j];", "* (x[j] * one);")
    text = text.replace("y[i] = 2 * y[i];", "one = 7.0f; y[i] = (four - two) * y[i];")
    job = times_job(text, rewrite={"allow": ["register_sum", "register_tile"]})
    written = make_template(job).template.kernel.text
    assert "ws_keep_two" in written
    assert "ws_keep_four" in written
    assert problems(job, tmp_path, 4) == []


def test_fast_functions_are_replaced_where_they_stand_in_a_tile(tmp_path: Path) -> None:
    text = ROWS.replace("y[i] = 2 * y[i];", "y[i] = sqrt(4.0f) * y[i];")
    job = times_job(text, rewrite={"allow": ["register_sum", "register_tile", "fast_math"]})
    made = make_template(job).template.kernel.text
    assert made.count("WS_SQRT(4.0f)") > 1
    assert problems(job, tmp_path, 4) == []


def test_a_product_without_bounds_takes_tiles_that_divide_its_grid(tmp_path: Path) -> None:
    job = product_job(PRODUCT.replace(GUARD, ""), [{"rows": 8, "columns": 64, "inner": 7}])
    template = make_template(job).template
    constraints = [c.expression.text for c in template.space.constraints]
    assert "(ceil_div(columns, WS_BLOCK_X)) % WS_TILE_X == 0" in constraints
    job = product_job(PRODUCT.replace(GUARD, ""), [{"rows": 16, "columns": 128, "inner": 7}])
    narrow = job.rewrite.model_copy(update={"deny": ("block_size",)})
    assert problems(job.model_copy(update={"rewrite": narrow}), tmp_path, 4) == []


def test_where_a_tile_is_compiled_other_parameters_keep_their_defaults() -> None:
    template = make_template(product_job()).template
    texts = [c.expression.text for c in template.space.constraints]
    assert "WS_UNROLL == 0 or not (WS_TILE_X * WS_TILE_Y > 1 or WS_STAGE > 0)" in texts
    grid = template.kernel.launch.grid[0].text
    assert grid.startswith(
        "(ceil_div(ceil_div(columns, WS_BLOCK_X), WS_TILE_X)) if WS_TILE_X * WS_TILE_Y > 1"
    )


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (LOOP, "for (k = i; k < inner; k++)", "not the same for every element"),
        (LOOP, "for (k = 0; k < inner && k < i; k++)", "no loop that counts by one"),
        (UPDATE, "if (k > 5) break; " + UPDATE, "may end early"),
        (UPDATE, "c[i * columns + (j + k) % columns] += a[i * inner + k];", "writes c["),
        (UPDATE, UPDATE + " barrier(CLK_LOCAL_MEM_FENCE);", "barrier"),
        (UPDATE, UPDATE + " atomic_inc((__global int*)b);", "atomic_inc"),
        (GUARD, GUARD[:-1] + " && a[i] > 0)", "may leave the kernel|no loop"),
        ("int k;", "int k; c[0] = get_local_id(0);", "also reads a thread's place"),
        ("int k;", "int k; __local float t[4];", "shared memory"),
        ("int i = get_global_id(1);", "int i = get_global_id(1); i = i + 1;", "i is changed"),
        ("c[i * columns + j] *= beta;", "float four[4]; four[0] = beta;", "four carries more than a number"),
    ],
)
def test_what_cannot_be_proven_declines(old: str, new: str, why: str) -> None:
    assert old in PRODUCT
    found = reason(make_template(product_job(PRODUCT.replace(old, new))), "register_tile")
    assert any(w in found for w in why.split("|")), found


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (UPDATE, "c[i * columns + j] += c[i * columns] * a[i * inner + k];", "not the only use of c"),
        (UPDATE, "c[i * columns + k] += a[i * inner + k];", "differs between iterations"),
        (UPDATE, "c[(int)a[k]] += a[i * inner + k];", "differs between iterations"),
        (UPDATE, UPDATE + " barrier(CLK_LOCAL_MEM_FENCE);", "calls barrier"),
        (UPDATE, "c[i] = a[k];", "no element of memory"),
    ],
)
def test_an_element_that_may_be_another_stays_in_memory(old: str, new: str, why: str) -> None:
    found = reason(make_template(product_job(PRODUCT.replace(old, new))), "register_sum")
    assert why in found, found


def test_an_element_is_left_alone_where_the_loop_has_no_iteration() -> None:
    text = make_template(times_job(ROWS)).template.kernel.text
    assert "if (((0) < (columns))) ws_sum_0 = y[i];" in text
    assert "if (((0) < (columns))) y[i] = ws_sum_0;" in text
    conditional = ROWS.replace("y[i] += a", "if (x[j] > 0) y[i] += a")
    assert "left alone" in reason(make_template(times_job(conditional)), "register_sum")


def test_a_cuda_product_compiles_with_any_tile() -> None:
    source = PRODUCT.replace("__kernel", 'extern "C" __global__').replace("__global float", "float")
    for n, axis in ((0, "x"), (1, "y")):
        place = f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        source = source.replace(f"get_global_id({n})", place)
    job = product_job()
    kernel = job.kernel.model_dump() | {"backend": "cuda", "source": source}
    job = Job.model_validate(job.model_dump() | {"kernel": kernel})
    template = make_template(job).template
    assert "WS_STAGE" in template.space.defaults
    for c in feasible(template, job.workloads[0], seed=3, count=6):
        configured = template.configured(c)
        assert compile_cuda(configured.source, "product") == "", c
