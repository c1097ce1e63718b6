"""Launch and shapes follow from a kernel's own indices, and what is not understood is not said to be sure."""

import time

import pytest
import yaml

from testbed.deadlines import stretched
from warpsmith.domain.device import Backend
from warpsmith.extensions.scaffold.indices.index_space import (
    BLOCK,
    GRID,
    IndexSpace,
    SourceContext,
    index_space,
)
from warpsmith.extensions.scaffold.job_file import job_scaffold
from warpsmith.source.kernels.kernel_definitions import Dialect


def space(body: str, arguments: str = "__global float *x", head: str = "") -> IndexSpace:
    """The index space of an OpenCL kernel."""
    return index_space(f"{head}\n__kernel void k({arguments}) {{ {body} }}", Backend.OPENCL, "k")


HERE = "int i = get_global_id(0); "
XY = "int c = get_global_id(0), r = get_global_id(1); "
SIZED = "__global float *x, int w, int h"


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("if (c < w && r < h) x[r * w + c] = 1;", ("ceil_div(w, 16)", "ceil_div(h, 16)")),
        ("if (c >= w || h <= r) return; x[r * w + c] = 1;", ("ceil_div(w, 16)", "ceil_div(h, 16)")),
        ("if (c <= w - 1) if (!(r >= h)) x[w * r + c] = 1;", ("ceil_div(w, 16)", "ceil_div(h, 16)")),
        ("x[r * w + c] = 1;", ("ceil_div(w, 16)", "ceil_div(h, 16)")),
    ],
)
def test_an_image_has_its_extents_as_shape(body: str, grid: tuple[str, ...]) -> None:
    found = space(XY + body, SIZED)
    assert (found.grid, found.block) == (grid, ("16", "16"))
    assert {GRID, BLOCK, "x"} <= found.sure
    unguarded = "if" not in body
    assert found.shapes["x"] == (("round_up(h, 16)", "round_up(w, 16)") if unguarded else ("h", "w"))


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (HERE + "if (i < w) x[i] = 1;", ("w",)),
        (HERE + "if (i < w) { x[i] = 1; x[i + 3] = 2; }", ("w + 3",)),
        ("for (int i = get_global_id(0); i < w; i += get_global_size(0)) x[i] = 1;", ("w",)),
        (HERE + "if (i < w) for (int j = 0; j < h; ++j) x[j * w + i] = 1;", ("h", "w")),
        (
            HERE + "if (i < w) { __global float *p = x + i * h; for (int j = 0; j < h; j++) p[j] = 1; }",
            ("w", "h"),
        ),
        (HERE + "if (i < w * h) { int r = i / w, c = i % w; x[r * w + c] = 1; }", ("h", "w")),
        (HERE + "if (i < w) x[min(i + 5, w - 1)] = 1;", ("w",)),
        (HERE + "if (i < w) x[clamp(i - 2, 0, w - 1)] = 1;", ("w",)),
        (HERE + "if (i < w) x[i & 7] = 1;", ("8",)),
        (HERE + "if (i < w) x[i % h] = 1;", ("h",)),
        (HERE + "if (i < w) x[i + 1 < w ? i + 1 : w - 1] = 1;", ("w",)),
        (HERE + "if (i < w) vstore4((float4)(1), i, x);", ("4 * w",)),
        (HERE + "if (i < w) ((__global float4 *)x)[i] = 1;", ("4 * w",)),
        (HERE + "if (i < w) *(x + 2 * i + 1) = 1;", ("2 * w",)),
        (HERE + "int n = w; while (i < n) { x[i] = 1; i += 4; }", ("w",)),
    ],
)
def test_the_largest_index_is_the_shape(body: str, shape: tuple[str, ...]) -> None:
    found = space(body, SIZED)
    assert found.shapes["x"] == shape
    assert "x" in found.sure


@pytest.mark.parametrize(
    "body",
    [
        HERE + "if (i < w) x[idx[i]] = 1;",
        HERE + "if (i < w) x[other(i)] = 1;",
        HERE + "if (i < w) for (int j = 0; idx[j]; ++j) x[j] = 1;",
        HERE + "if (i < w) change(x, i);",
        HERE + "if (i < w) { i += h; x[i] = 1; }",
        HERE + "while (i < w) { i += h; x[i] = 1; }",
        HERE + "for (int j = i; j < w; j++) { j = idx[j]; x[j] = 1; }",
    ],
)
def test_what_depends_on_memory_or_is_not_bounded_is_not_sure(body: str) -> None:
    found = space(body, "__global float *x, __global const int *idx, int w, int h")
    assert "x" not in found.sure


def test_elements_that_are_indices_are_named() -> None:
    found = space(HERE + "if (i < w) x[idx[i]] = 1;", "__global float *x, __global int *idx, int w")
    assert found.indirect == {"idx"}
    assert found.shapes == {"idx": ("w",)}


TILED = """
#define TILE 8
#define AT(r, c, n) ((r) * (n) + (c))
"""


def test_tiles_say_the_block_and_macros_are_looked_through() -> None:
    body = """__local float a[TILE][TILE + 1];
    int tx = get_local_id(0), ty = get_local_id(1);
    int c = get_group_id(0) * TILE + tx, r = get_group_id(1) * TILE + ty;
    if (r < h && c < w) { a[ty][tx] = x[AT(r, c, w)]; x[AT(r, c, w)] = a[tx][ty]; }"""
    found = space(body, SIZED, TILED)
    assert (found.block, found.grid) == (("8", "8"), ("ceil_div(w, 8)", "ceil_div(h, 8)"))
    assert (found.shapes["x"], found.usage["x"]) == (("h", "w"), (True, True))
    assert {GRID, BLOCK, "x"} <= found.sure


def test_a_work_group_a_row_is_counted_in_blocks() -> None:
    body = """int r = get_group_id(0), t = get_local_id(0); float s = 0;
    for (int i = t; i < n; i += get_local_size(0)) s += x[r * n + i];
    part[t] = s; y[r] = part[0];"""
    found = space(body, "__global const float *x, __global float *y, __local float *part, int n")
    assert (found.grid, found.block, found.dimensions) == (("groups",), ("64",), {"groups": 1024})
    assert found.shapes == {"x": ("groups", "n"), "y": ("groups",), "part": ("64",)}
    assert {"x", "y", "part"} <= found.sure


def test_a_kernel_without_a_size_gets_a_dimension_that_its_buffers_follow() -> None:
    found = space(HERE + "x[i] = 1;")
    assert (found.grid, found.dimensions) == (("ceil_div(n, 64)",), {"n": 1024})
    assert found.shapes == {"x": ("round_up(n, 64)",)}


def test_the_width_of_something_else_is_no_extent_of_the_launch() -> None:
    body = XY + "x[r * get_global_size(0) + c] = maskWidth;"
    assert space(body, "__global float *x, int maskWidth, int rows").grid == (
        "ceil_div(width, 16)",
        "ceil_div(rows, 16)",
    )


def test_extents_that_cannot_be_compared_are_a_guess() -> None:
    found = space(HERE + "if (i < w) x[i] = 1; if (i < h) x[i] = 2;", SIZED)
    assert found.shapes["x"] == ("max(w, h)",)
    assert not {"x", GRID} & found.sure


def test_scalars_that_decide_nothing_are_free() -> None:
    body = HERE + "float t = a * 2; if (i < w && x[i] > b) x[i] = t;"
    assert space(body, "__global float *x, int w, float a, float b").free == {"a"}


def test_given_blocks_and_numbers_count() -> None:
    text = "__global__ void k(float *x) { int i = blockIdx.x * N + threadIdx.x; if (i < M) x[i] = 1; }"
    given = SourceContext(threads=128, numbers={"N": 128, "M": 1000})
    found = index_space(text, Backend.CUDA, "k", given)
    assert (found.grid, found.block, found.shapes) == (("ceil_div(1000, 128)",), ("128",), {"x": ("1000",)})


def test_long_kernels_take_bounded_time() -> None:
    body = HERE + "if (i < w) {" + "".join(f"x[i + {n}] = {n}.0f;\n" for n in range(3000)) + "}"
    start = time.process_time()
    space(body, SIZED)
    assert time.process_time() - start < stretched(4)


def test_buffers_may_be_called_as_the_launch_is() -> None:
    text = (
        "__kernel void f(__local float *block, __global float *grid) { grid[get_global_id(0)] = block[3]; }\n"
    )
    job = yaml.safe_load(job_scaffold(text, "k.cl", Dialect.OPENCL, "f"))
    assert [a["name"] for a in job["kernel"]["arguments"]] == ["block", "grid"]


@pytest.mark.parametrize(
    ("index", "is_sure"),
    [
        ("get_global_id(0)", True),
        ("get_group_id(0) * get_local_size(0) + get_local_id(0)", True),
        ("get_local_id(0)", False),
        ("get_group_id(0) * n + get_local_id(0)", False),
    ],
)
def test_a_block_is_free_only_where_no_buffer_follows_it(index: str, is_sure: bool) -> None:
    head = "__kernel void k(__global float* x, __global float* y, int n) { "
    text = f"{head}y[get_global_id(0)] = x[{index}]; }}"
    found = index_space(text, Backend.OPENCL, "k")
    assert (BLOCK in found.sure) == is_sure
    assert (found.reasons[BLOCK] == "any size is right") == is_sure
