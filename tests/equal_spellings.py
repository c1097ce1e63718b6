"""Kernels in their plainest spelling, and drawn spellings of the same kernels.

The eight kernels were written down before anything was measured on them, and so was the list of what people
spell otherwise. No code here knows how rules read a kernel: a spelling is made from the text by a grammar.

Every spelling computes what the plain one does, so equal rules and equal parameters are wanted for it.
"""

from collections.abc import Callable, Mapping
from random import Random

from tests.kernel_kinds import LINE, ONE_ROW_A_THREAD, PLANE, ROWS, Kind
from tests.kernel_styles import STYLES, written
from tests.spelling_conditions import (
    branch_for_choice,
    return_early,
    spell_braces,
    turn_comparisons,
)
from tests.spelling_indices import (
    add_to_pointers,
    cast_coordinates,
    commute_indices,
    compare_without_sign,
    define_coordinates,
    define_indices,
    name_coordinates,
    name_indices,
    name_parts_of_indices,
    point_at_rows,
    widen_products,
)
from tests.spelling_steps import (
    declare_counters_before,
    define_steps,
    inline_locals,
    loop_by_while,
    name_loads,
    plain_assignments,
    spell_increments,
    spell_steps,
    wrap_in_parentheses,
)
from warpsmith.domain.job import Job
from warpsmith.domain.space import ParameterValue
from warpsmith.rewrite.templater import make_template

Transformation = Callable[[str, Random], str]
"""Another spelling of a kernel's text; the text itself where there is nothing to change."""


def _buffer(name: str, role: str, *shape: str, dtype: str = "float32") -> Mapping[str, str | list[str]]:
    return {"name": name, "dtype": dtype, "role": role, "shape": list(shape)}


def _count(*names: str) -> tuple[Mapping[str, str | list[str]], ...]:
    return tuple({"name": n, "dtype": "int32", "role": "scalar", "value": n} for n in names)


def _reference(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in ("x = inputs['x']", *lines))
    return f"import numpy as np\ndef reference(inputs, dims):\n{body}"


_NORM = """{
  <shared> float part[32];
  int row = <bid.x>;
  int lane = <tid.x>;
  float sum = 0.0f;
  for (int i = lane; i < n; i += <size.x>) {
    float v = x[row * n + i];
    sum += v * v;
  }
  part[lane] = sum;
  <sync>;
  for (int s = <size.x> / 2; s > 0; s >>= 1) {
    if (lane < s) {
      part[lane] += part[lane + s];
    }
    <sync>;
  }
  float scale = 1.0f / sqrt<f>(part[0] / n + 1e-5f);
  for (int i = lane; i < n; i += <size.x>) {
    y[row * n + i] = x[row * n + i] * scale * w[i];
  }
}
"""
_SOFTMAX = """{
  <shared> float part[32];
  int row = <bid.x>;
  int lane = <tid.x>;
  float top = -1e30f;
  for (int i = lane; i < n; i += <size.x>) {
    top = fmax<f>(top, x[row * n + i]);
  }
  part[lane] = top;
  <sync>;
  for (int k = 0; k < <size.x>; k++) {
    top = fmax<f>(top, part[k]);
  }
  <sync>;
  float sum = 0.0f;
  for (int i = lane; i < n; i += <size.x>) {
    sum += exp<f>(x[row * n + i] - top);
  }
  part[lane] = sum;
  <sync>;
  sum = 0.0f;
  for (int k = 0; k < <size.x>; k++) {
    sum += part[k];
  }
  for (int i = lane; i < n; i += <size.x>) {
    y[row * n + i] = exp<f>(x[row * n + i] - top) / sum;
  }
}
"""
_PRODUCT = """{
  int j = <gid.x>;
  int i = <gid.y>;
  if (i < n && j < n) {
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
      sum += x[i * n + k] * z[k * n + j];
    }
    y[i * n + j] = sum;
  }
}
"""
_LEAKY = """{
  int j = <gid.x>;
  int i = <gid.y>;
  if (i < h && j < w) {
    float v = x[i * w + j];
    y[i * w + j] = v > 0.0f ? v : 0.1f * v;
  }
}
"""
_STENCIL = """{
  int j = <gid.x>;
  int i = <gid.y>;
  if (i > 0 && i < h - 1 && j > 0 && j < w - 1) {
    y[i * w + j] = (x[i * w + j - 1] + x[i * w + j + 1] + x[(i - 1) * w + j] + x[(i + 1) * w + j]) * 0.25f;
  }
}
"""
_GRID_STRIDE = """{
  for (int i = <gid.x>; i < n; i += <all.x>) {
    float v = x[i];
    y[i] = v / (1.0f + exp<f>(-v));
  }
}
"""
_ROW_SUMS = """{
  int i = <gid.x>;
  if (i < r) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
      sum += x[i * n + j];
    }
    y[i] = sum;
  }
}
"""
_GATHER = """{
  int row = <bid.x>;
  int from = index[row];
  for (int i = <tid.x>; i < n; i += <size.x>) {
    y[row * n + i] = x[from * n + i];
  }
}
"""
_ROWS_OF = (_buffer("x", "input", "r", "n"), _buffer("y", "output", "r", "n"))
_PLANES = (_buffer("x", "input", "h", "w"), *_count("h", "w"))

BASES: tuple[Kind, ...] = (
    Kind(
        "rms norm",
        (_buffer("w", "input", "n"), *_ROWS_OF, *_count("n")),
        "",
        _NORM,
        *ROWS,
        _reference(
            "return {'y': x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * inputs['w']}",
        ),
    ),
    Kind(
        "softmax",
        (*_ROWS_OF, *_count("n")),
        "",
        _SOFTMAX,
        *ROWS,
        _reference(
            "e = np.exp(x - x.max(axis=1, keepdims=True))", "return {'y': e / e.sum(axis=1, keepdims=True)}"
        ),
    ),
    Kind(
        "matrix product",
        (
            _buffer("x", "input", "n", "n"),
            _buffer("z", "input", "n", "n"),
            _buffer("y", "output", "n", "n"),
            *_count("n"),
        ),
        "",
        _PRODUCT,
        ("ceil_div(n, 16)", "ceil_div(n, 8)"),
        ("16", "8"),
        ({"n": 16}, {"n": 21}),
        _reference("return {'y': x @ inputs['z']}"),
    ),
    Kind(
        "elements of a plane",
        (*_PLANES, _buffer("y", "output", "h", "w")),
        "",
        _LEAKY,
        *PLANE,
        _reference("return {'y': np.where(x > 0, x, 0.1 * x)}"),
    ),
    Kind(
        "stencil",
        (*_PLANES, _buffer("y", "inout", "h", "w")),
        "",
        _STENCIL,
        *PLANE,
        _reference(
            "y = np.copy(inputs['y'])",
            "y[1:-1, 1:-1] = (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]) * 0.25",
            "return {'y': y}",
        ),
    ),
    Kind(
        "grid stride",
        (_buffer("x", "input", "n"), _buffer("y", "output", "n"), *_count("n")),
        "",
        _GRID_STRIDE,
        *LINE,
        _reference("return {'y': x / (1 + np.exp(-x))}"),
    ),
    Kind(
        "sums of rows",
        (_buffer("x", "input", "r", "n"), _buffer("y", "output", "r"), *_count("r", "n")),
        "",
        _ROW_SUMS,
        *ONE_ROW_A_THREAD,
        _reference("return {'y': x.sum(axis=1)}"),
    ),
    Kind(
        "gather",
        (
            _buffer("x", "input", "128", "n"),
            _buffer("index", "input", "r", dtype="int32"),
            _buffer("y", "output", "r", "n"),
            *_count("n"),
        ),
        "",
        _GATHER,
        *ROWS,
        _reference("return {'y': x[inputs['index'].astype(int)]}"),
        element="int",
    ),
)

TRANSFORMATIONS: tuple[Transformation, ...] = (
    commute_indices,
    turn_comparisons,
    return_early,
    loop_by_while,
    declare_counters_before,
    spell_steps,
    spell_increments,
    add_to_pointers,
    point_at_rows,
    name_indices,
    name_parts_of_indices,
    inline_locals,
    name_coordinates,
    define_indices,
    define_coordinates,
    define_steps,
    cast_coordinates,
    widen_products,
    compare_without_sign,
    plain_assignments,
    wrap_in_parentheses,
    spell_braces,
    name_loads,
    branch_for_choice,
)
MOST = 8
"""Transformations of one spelling."""


def plain_job(base: Kind, backend: str) -> Job:
    """The job of a base kernel as it is written here."""
    return written(base, STYLES[0], "as written", backend).job


def spelt_job(base: Kind, backend: str, source: str) -> Job:
    """The job of a base kernel with another text."""
    job = plain_job(base, backend)
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source})})


def spelling(base: Kind, backend: str, rng: Random) -> str:
    """A drawn spelling: one to eight transformations in a drawn order, each at some of its places."""
    text = plain_job(base, backend).kernel.text
    for transformation in rng.sample(TRANSFORMATIONS, rng.randint(1, MOST)):
        text = transformation(text, rng)
    return text


def outline(job: Job) -> tuple[list[str], dict[str, tuple[ParameterValue, ...]]]:
    """Rules that apply, by name, and the values of the parameters of the template."""
    template = make_template(job).template
    rules = sorted({a.rule for a in template.applied})
    return rules, {p.name: p.values for p in template.space.parameters}


def same_template(base: Job, spelt: Job) -> bool:
    """Whether rules make the same of two jobs: the same rules apply and the same values can be chosen."""
    return outline(base) == outline(spelt)
