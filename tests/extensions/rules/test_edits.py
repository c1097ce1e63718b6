"""What rules write into a source never joins with what stands beside it."""

import pytest

from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.rules.templater import make_template
from warpsmith.source.tree.syntax_tree import Edit, apply_edits
from warpsmith.testing.jobs import scale_job


def copying(backend: str, parameters: str, body: str = "if (i < n) y[i] = x[i];") -> Job:
    """A job of one guarded element a thread, its parameters written as given."""
    opencl = backend == "opencl"
    head = "__kernel" if opencl else 'extern "C" __global__'
    place = "get_global_id(0)" if opencl else "blockIdx.x * blockDim.x + threadIdx.x"
    kernel = scale_job().kernel.model_dump() | {
        "backend": backend,
        "source": f"{head} void scale({parameters}) {{\n  int i = {place};\n  {body}\n}}\n",
        "launch": {"grid": ["ceil_div(n, 64)"], "block": ["64"]},
    }
    return Job.model_validate(scale_job().model_dump() | {"kernel": kernel, "parameters": []})


@pytest.mark.parametrize(
    ("text", "edits", "wanted"),
    [
        ("float *x", [Edit(7, 7, " restrict")], "float * restrict x"),
        ("float * x", [Edit(7, 7, " restrict")], "float * restrict x"),
        ("float*x", [Edit(6, 6, "restrict")], "float*restrict x"),
        ("__global/**/float", [Edit(8, 12, "")], "__global float"),
        ("a+b", [Edit(0, 1, "c"), Edit(1, 2, ""), Edit(2, 3, "d")], "c d"),
        ("if(a)return;", [Edit(5, 11, "continue")], "if(a)continue;"),
        ("x", [Edit(0, 0, "const"), Edit(1, 1, "y")], "const x y"),
        ("int a; b;", [Edit(7, 7, "#pragma unroll\n")], "int a; \n#pragma unroll\nb;"),
        ("int a;\n  b;", [Edit(9, 9, "#pragma unroll\n")], "int a;\n  #pragma unroll\nb;"),
        ("größe", [Edit(0, 0, "const"), Edit(7, 7, "_t")], "const größe _t"),
    ],
)
def test_an_edit_keeps_words_apart_and_gives_directives_a_line(
    text: str, edits: list[Edit], wanted: str
) -> None:
    assert apply_edits(text, edits) == wanted


@pytest.mark.parametrize("style", ["float {}x", "float {} x", "float{} x", "float{}x", "float\t{}\tx"])
@pytest.mark.parametrize(("backend", "word"), [("opencl", "restrict"), ("cuda", "__restrict__")])
def test_restrict_is_a_word_of_its_own_however_the_star_is_written(
    style: str, backend: str, word: str
) -> None:
    space = "__global " if backend == "opencl" else ""
    listed = f"{space}{style.format('*')}, {space}{style.format('*').replace('x', 'y')}, int n"
    source = make_template(copying(backend, listed)).template.kernel.text
    for name in "xy":
        assert f"* {word} {name}" in source or f"* {word}\t{name}" in source, source


@pytest.mark.parametrize("sync", ["barrier(CLK_GLOBAL_MEM_FENCE);", "mem_fence(CLK_GLOBAL_MEM_FENCE);"])
def test_what_threads_of_a_block_hand_over_in_memory_is_not_restrict(sync: str) -> None:
    body = f"if (i < n) y[i] = x[i]; {sync} if (i + 1 < n) x[i] = y[i + 1];"
    source = make_template(copying("opencl", "__global float *x, __global float *y, int n", body))
    assert "restrict" not in source.template.kernel.text
    alone = make_template(
        copying("opencl", "__global float *x, __global float *y, int n", body.replace(sync, ""))
    )
    assert alone.template.kernel.text.count("restrict") == 2


def test_a_buffer_whose_address_is_taken_is_not_made_const() -> None:
    body = "if (i < n) { __global float *from = &x[i]; y[i] = *from; }"
    source = make_template(copying("opencl", "__global float *x, __global float *y, int n", body))
    assert "const float" not in source.template.kernel.text
