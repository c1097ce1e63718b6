"""Many spellings of one kernel come out as one; what only looks alike stays as it is."""

import re
from random import Random

import pytest

from testbed.kernels.equal_spellings import plain_job, same_template, spelling, spelt_job
from testbed.kernels.kernel_styles import BACKENDS
from testbed.kernels.plain_kernels import BASES
from warpsmith.domain.job import Job
from warpsmith.jobfile import parse_job
from warpsmith.rewrite.form.usual_spelling import usually_spelt
from warpsmith.rewrite.source.work_limit import limited_work
from warpsmith.rewrite.templater import first_draft, make_template

DRAWS = 5
"""Spellings of each kernel and back end; the bench `benchmarks.spellings` draws more."""
LEAST_SHARE = 0.95


def job_of(body: str, *, n: int = 64, value: str = "n", opencl: bool = False, length: str = "n") -> Job:
    """A kernel with these statements, over buffers `x` and `w` that it reads and `y` that it writes."""
    head = 'extern "C" __global__ void k(const float *x, const float *w, float *y, int n, int m, unsigned u)'
    if opencl:
        buffers = "__global const float *x, __global const float *w, __global float *y"
        head = f"__kernel void k({buffers}, int n, int m, uint u)"
    roles = [("x", "input"), ("w", "input"), ("y", "output")]
    arguments = [{"name": a, "dtype": "float32", "role": r, "shape": [length]} for a, r in roles]
    numbers = [("n", "int32", value), ("m", "int32", value), ("u", "uint32", value)]
    arguments += [{"name": a, "dtype": d, "role": "scalar", "value": v} for a, d, v in numbers]
    return parse_job(
        {
            "name": "k",
            "kernel": {
                "backend": "opencl" if opencl else "cuda",
                "source": f"{head} {{\n{body}\n}}\n",
                "entry": "k",
                "launch": {"grid": ["n"], "block": ["256"]},
                "arguments": arguments,
            },
            "workloads": [{"dimensions": {"n": n}}],
            "reference": {"kind": "kernel"},
        }
    )


def usual(body: str, **given: object) -> str:
    """The statements in the usual spelling, with single blanks."""
    text = usually_spelt(first_draft(job_of(body, **given))).kernel.text  # type: ignore[arg-type]
    return " ".join(text[text.index("{") + 1 : text.rindex("}")].split())


ROW = "int row = blockIdx.x; int i = threadIdx.x; "


def placed(written: str) -> str:
    """The statements behind the locals that they use, since others would go."""
    names = [("row", "int row = blockIdx.x; "), ("i", "int i = threadIdx.x; ")]
    return "".join(text for name, text in names if re.search(rf"\b{name}\b", written)) + written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("y[i] = *(x + row * n + i);", "y[i] = x[row * n + i];"),
        ("y[i] = *(i + x);", "y[i] = x[i];"),
        ("y[i] = (x + row)[i - 1];", "y[i] = x[row + i - 1];"),
        ("y[i] = (x + row)[-1];", "y[i] = x[row - 1];"),
        ("const float *p = x + row * n; y[i] = p[i];", "y[i] = x[row * n + i];"),
        ("y[i] = x[i + n * row];", "y[i] = x[row * n + i];"),
        ("y[i] = x[1 + row * n + i];", "y[i] = x[row * n + i + 1];"),
        ("int at = row * n + i; y[at] = x[at];", "y[row * n + i] = x[row * n + i];"),
        ("y[i] = x[(size_t)row * n + i];", "y[i] = x[row * n + i];"),
        ("if (n > i) y[i] = x[row];", "if (i < n) y[i] = x[row];"),
        ("if (i <= n - 1) y[i] = x[row];", "if (i < n) y[i] = x[row];"),
        ("if ((unsigned)i < (unsigned)n) y[i] = x[row];", "if (i < n) y[i] = x[row];"),
        ("if (!(i >= n)) y[i] = x[row];", "if (i < n) y[i] = x[row];"),
        ("if (!(i < n && row < m)) return; y[i] = x[row];", "if (i >= n || row >= m) return; y[i] = x[row];"),
    ],
)
def test_one_spelling_of_many(written: str, expected: str) -> None:
    assert usual(placed(written)) == placed(expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "int j = threadIdx.x; while (j < n) { y[j] = x[j]; j = blockDim.x + j; }",
            "for (int j = threadIdx.x; j < n; j += blockDim.x) { y[j] = x[j]; }",
        ),
        (
            "int j; for (j = threadIdx.x; j < n; j += blockDim.x) y[j] = x[j];",
            "for (int j = threadIdx.x; j < n; j += blockDim.x) y[j] = x[j];",
        ),
        (
            "const int step = blockDim.x; for (int j = threadIdx.x; j < n; j += step) y[j] = x[j];",
            "for (int j = threadIdx.x; j < n; j += blockDim.x) y[j] = x[j];",
        ),
        (
            "for (int j = threadIdx.x; j < n; j += 256) y[j] = x[j];",
            "for (int j = threadIdx.x; j < n; j += blockDim.x) y[j] = x[j];",
        ),
        (
            "int first = blockIdx.x * blockDim.x; int j = first + threadIdx.x; if (j < n) y[j] = x[j];",
            "int j = blockIdx.x * blockDim.x + threadIdx.x; if (j < n) y[j] = x[j];",
        ),
        (
            "if (blockIdx.x * blockDim.x + threadIdx.x < n) y[blockIdx.x * blockDim.x + threadIdx.x] = 1;",
            "const int global_x = blockIdx.x * blockDim.x + threadIdx.x; if (global_x < n) y[global_x] = 1;",
        ),
    ],
)
def test_loops_and_coordinates(written: str, expected: str) -> None:
    assert usual(written) == expected


def test_words_of_opencl_go_with_what_they_belong_to() -> None:
    written = "int i = get_global_id(0); __global const float *p = x + n; y[i] = p[i];"
    assert usual(written, opencl=True) == "int i = get_global_id(0); y[i] = x[n + i];"


@pytest.mark.parametrize(
    "written",
    [
        # A comparison of floats is neither this nor that for a NaN.
        "if (!(x[i] >= w[i])) y[i] = 0;",
        # For no element the unsigned bound is the largest number.
        "if (threadIdx.x <= u - row) y[i] = 0;",
        # What may be negative is another number without its sign.
        "if ((unsigned)(row - i) < (unsigned)n) y[i] = 0;",
        # The pointer moves, and counts from elsewhere.
        "const float *p = x; p += row; y[i] = p[i];",
        # A moved pointer may be indexed below 0.
        "const float *p = w + row; p = p + 1; y[i] = p[(long)u - 1];",
        # The value changes before it is used.
        "int at = row; row = 2; y[at + i] = x[row];",
        # The sum of floats has an order.
        "float v = x[i]; v = v + w[i] + x[row]; y[i] = v;",
        # A continue would skip the update.
        "int j = 0; while (j < n) { if (x[j] > 0) continue; y[j] = 1; j += 1; }",
        # The counter is read after its loop.
        "int j; for (j = 0; j < n; j += 2) y[j] = 1; y[j - 1] = x[j - 1];",
        # The step of the loop is a number that is not the block's.
        "for (int j = threadIdx.x; j < n; j += 128) y[j] = x[j];",
        # Narrow numbers drop what does not fit.
        "unsigned char at = row * n; y[i] = x[at];",
        # Nobody knows what the class does.
        "Sum s; s = s + x[i]; y[i] = s;",
        # What stands between braces is declared there.
        "{ float v = x[i]; y[i] = v; }",
    ],
)
def test_what_only_looks_alike_stays(written: str) -> None:
    assert usual(placed(written)) == placed(written)


def test_indices_that_an_int_cannot_hold_keep_their_casts() -> None:
    written = ROW + "y[i] = x[(size_t)row * n + i];"
    assert usual(written, n=1 << 20, length="n * n") == written
    assert usual(written, n=1 << 20) == ROW + "y[i] = x[row * n + i];"


def test_a_number_that_may_be_0_is_no_extent() -> None:
    written = "int j = threadIdx.x; if ((unsigned)j <= (unsigned)n - 1) y[j] = x[j];"
    assert usual(written) == "int j = threadIdx.x; if (j < n) y[j] = x[j];"
    assert usual(written, value="n - 1") == written


def test_edits_that_meet_are_made_one_after_the_other() -> None:
    written = "int a = n * 2; int b = a + 1; y[b] = x[a + b]; y[a] = x[b];"
    expected = "y[n * 2 + 1] = x[(n * 2) + (n * 2 + 1)]; y[n * 2] = x[n * 2 + 1];"
    assert re.sub(r"[()]", "", usual(written)) == re.sub(r"[()]", "", expected)


@pytest.mark.parametrize(
    "written",
    [
        # The body of a macro names the local, and the tree does not show it.
        "int at = n * 2;\n#define AT(c) x[at + (c) ## 0]\ny[0] = AT(1);",
        # A directive names it.
        "const int four = 4;\n#pragma unroll four\nfor (int j = 0; j < n; j++) y[j] = x[j];",
        # Memory may change between the pointer and its use.
        "const float *p = x + (int)w[0]; y[0] = 1; y[1] = p[0];",
        # Nothing says that the operand is 0 or 1.
        "int b = !(!(n)); y[0] = b;",
        # The number is cut, which the words of the coordinate would not be.
        "int j = (unsigned char)threadIdx.x; y[j] = x[0];",
    ],
)
def test_what_the_tree_does_not_show_stays(written: str) -> None:
    assert usual(written) == " ".join(written.split())


def test_a_use_right_behind_its_declaration_counts() -> None:
    written = "int i = threadIdx.x; float *p = y + n;p[i] = x[i]; p[i + 1] = x[i];"
    assert usual(written) == "int i = threadIdx.x; y[n + i] = x[i]; y[n + i + 1] = x[i];"


def test_a_comment_before_a_local_keeps_its_line() -> None:
    written = "int i = threadIdx.x; // where\nint at = n * 2;\ny[at] = x[i];"
    text = usually_spelt(first_draft(job_of(written))).kernel.text
    assert "// where\n\ny[n * 2] = x[i];" in text


def test_other_functions_keep_their_text() -> None:
    job = job_of("int t = threadIdx.x; y[t] = x[t];")
    callee = "\n__device__ int own() { int lane = (int)threadIdx.x; int at = lane * 2; return at; }\n"
    for text in (job.kernel.text + callee, callee + job.kernel.text):
        kernel = job.kernel.model_copy(update={"source": text})
        made = usually_spelt(first_draft(job.model_copy(update={"kernel": kernel})))
        assert callee in made.kernel.text


def test_questions_about_values_end() -> None:
    """Locals that are made of each other, each by several ways."""
    names = "abcdefgh"
    body = "".join(f"int {v} = n; " for v in names)
    body += "for (int k = 0; k < n; k++) { " + "".join(
        f"{v} += {w}; " for v in names for w in names if v != w
    )
    with limited_work(2_000_000):
        text = usual(body + "} if ((unsigned)a < (unsigned)n) y[a] = x[b];")
    assert "if (a < n) y[a] = x[b];" in text


def test_locals_do_not_grow_a_text_without_end() -> None:
    doubled = "int a0 = n; " + "".join(f"int a{k + 1} = a{k} + a{k}; " for k in range(40))
    text = usual(doubled + "y[a40] = x[0];")
    assert len(text) < 3 * len(doubled) + 8000


def test_the_users_spelling_stays_where_it_hides_nothing() -> None:
    body = ROW + "if (n > i) y[i] = x[i];"
    assert "n > i" in make_template(job_of(body)).template.kernel.text


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_kernels_get_equal_templates(backend: str) -> None:
    lost = []
    for base in BASES:
        plain = plain_job(base, backend)
        for n in range(DRAWS):
            source = spelling(base, backend, Random(f"gate {base.name} {backend} {n}"))
            if not same_template(plain, spelt_job(base, backend, source)):
                lost.append(f"{base.name}:\n{source}")
    assert len(lost) <= (1 - LEAST_SHARE) * DRAWS * len(BASES), "\n".join(lost)
