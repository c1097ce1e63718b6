"""Kernels of one guarded element a thread, as people write them, with NumPy references."""

from collections.abc import Sequence
from typing import Any

from warpsmith.domain.jobs.job import Job

PRODUCT = """\
__kernel void product(__global float *a, __global float *b, __global float *c, float beta,
                      int rows, int columns, int inner)
{
    int j = get_global_id(0);
    int i = get_global_id(1);

    if ((i < rows) && (j < columns))
    {
        c[i * columns + j] *= beta;
        int k;
        for (k = 0; k < inner; k++)
        {
            c[i * columns + j] += 2.0f * a[i * inner + k] * b[k * columns + j];
        }
    }
}
"""
PRODUCT_RETURN = """\
__kernel void product(__global float *a, __global float *b, __global float *c, float beta,
                      int rows, int columns, int inner) {
  const int j = get_global_id(0), i = get_global_id(1);
  float sum = 0.0f;
  if (i >= rows || j >= columns) return;
  const int first = i * inner;
  for (int k = 0; k < inner; ++k) { const float left = a[first + k]; sum += left * b[k * columns + j]; }
  c[i * columns + j] = beta * c[i * columns + j] + 2 * sum;
}
"""
ROWS = """\
typedef float DATA;
__kernel void times(__global DATA* a, __global DATA* x, __global DATA* y, int rows, int columns) {
    int i = get_global_id(0);

    if (i < rows)
    {
        int j;
        for (j = 0; j < columns; j++)
            y[i] += a[i * columns + j] * x[j];
        y[i] = 2 * y[i];
    }
}
"""
COLUMNS = """\
__kernel void times(__global float *a, __global float *x, __global float *y, int rows, int columns) {
    int i = get_global_id(0);
    if (i < rows) {
        y[i] = 1.0f;
        for (int j = 0; j < columns; j++)
            y[i] += a[j * rows + i] * x[j];
    }
}
"""


def buffer(name: str, role: str, *shape: str) -> dict[str, Any]:
    """An argument of float32."""
    return {"name": name, "dtype": "float32", "role": role, "shape": list(shape)}


def number(name: str, value: str, dtype: str = "int32") -> dict[str, Any]:
    """A scalar argument."""
    return {"name": name, "dtype": dtype, "role": "scalar", "value": value}


def element_job(
    source: str,
    entry: str,
    arguments: Sequence[dict[str, Any]],
    launch: dict[str, Any],
    workloads: Sequence[dict[str, int]],
    reference: str,
    **more: Any,
) -> Job:
    """A job whose reference returns what the lines of `reference` put into `out`."""
    text = "import numpy as np\ndef reference(inputs, dims):\n    out = {}\n" + "".join(
        f"    {line}\n" for line in reference.splitlines()
    )
    fields = {
        "name": entry,
        "kernel": {
            "backend": "opencl",
            "source": source,
            "entry": entry,
            "arguments": list(arguments),
            "launch": launch,
        },
        "workloads": [{"dimensions": w} for w in workloads],
        "reference": {"kind": "numpy", "source": text + "    return out\n"},
        "tolerances": {
            a["name"]: {"rtol": 2e-4, "atol": 2e-4}
            for a in arguments
            if a["role"] != "scalar" and a["role"] != "input"
        },
    }
    return Job.model_validate(fields | more)


def product_job(source: str = PRODUCT, workloads: Sequence[dict[str, int]] = (), **more: Any) -> Job:
    """`c = beta * c + 2 a b`."""
    return element_job(
        source,
        "product",
        [
            buffer("a", "input", "rows", "inner"),
            buffer("b", "input", "inner", "columns"),
            buffer("c", "inout", "rows", "columns"),
            number("beta", "0.5", "float32"),
            number("rows", "rows"),
            number("columns", "columns"),
            number("inner", "inner"),
        ],
        {"grid": ["ceil_div(columns, 16)", "ceil_div(rows, 4)"], "block": [16, 4]},
        workloads or [{"rows": 37, "columns": 45, "inner": 19}, {"rows": 1, "columns": 3, "inner": 1}],
        "out['c'] = 0.5 * inputs['c'] + 2 * inputs['a'] @ inputs['b']",
        **more,
    )


def times_job(source: str = ROWS, workloads: Sequence[dict[str, int]] = (), **more: Any) -> Job:
    """`y = 2 (y + a x)` by rows, or `y = 1 + x a` by columns."""
    by_rows = source != COLUMNS
    return element_job(
        source,
        "times",
        [
            buffer("a", "input", *(("rows", "columns") if by_rows else ("columns", "rows"))),
            buffer("x", "input", "columns"),
            buffer("y", "inout", "rows"),
            number("rows", "rows"),
            number("columns", "columns"),
        ],
        {"grid": ["ceil_div(rows, 32)"], "block": [32]},
        workloads or [{"rows": 77, "columns": 53}, {"rows": 1, "columns": 100}, {"rows": 33, "columns": 1}],
        "out['y'] = 2 * (inputs['y'] + inputs['a'] @ inputs['x'])"
        if by_rows
        else "out['y'] = 1 + inputs['x'] @ inputs['a']",
        **more,
    )


SOFTMAX = """\
__kernel void rows_of(__global const float *x, __global float *y, int rows, int columns) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  __global const float *from = x + row * columns;
  float most = from[0], sum = 0;
  int where = 0;
  for (int j = 1; j < columns; ++j) if (from[j] > most) { most = from[j]; where = j; }
  for (int j = 0; j < columns; ++j) { float e = exp(from[j] - most); sum += e; y[row * columns + j] = e; }
  for (int j = 0; j < columns; ++j) y[row * columns + j] /= sum;
  y[row * columns + where] += 1;
}
"""
NEAREST = """\
__kernel void nearest(__global float *x, __global float *centres, __global int *found,
                      int points, int count, int features)
{
    unsigned int point = get_global_id(0);
    int index = 0;
    if (point < points)
    {
        float least = 3.40282347e+38f;
        for (int c = 0; c < count; c++) {
            float distance = 0, part = 0;
            for (int f = 0; f < features; f++) {
                part += (x[f * points + point] - centres[c * features + f])
                      * (x[f * points + point] - centres[c * features + f]);
            }
            distance = part;
            if (distance < least) { least = distance; index = c; }
        }
        found[point] = index;
    }
}
"""
NESTED = """\
__kernel void nested(__global float *a, __global float *y, int rows, int columns) {
  int i = get_global_id(0);
  if (i < rows) {
    float last = 0;
    for (int r = 0; r < 3; r++) {
      float s = 0.0f;
      for (int j = 0; j < columns; j++) s = s + a[i * columns + j] * (r + 1);
      y[i * 3 + r] = s + last;
      last = y[i * 3 + r];
    }
  }
}
"""


def softmax_job(workloads: Sequence[dict[str, int]] = ()) -> Job:
    """A softmax by rows, with 1 added to the greatest."""
    return element_job(
        SOFTMAX,
        "rows_of",
        [
            buffer("x", "input", "rows", "columns"),
            buffer("y", "output", "rows", "columns"),
            number("rows", "rows"),
            number("columns", "columns"),
        ],
        {"grid": ["ceil_div(rows, 32)"], "block": [32]},
        workloads or [{"rows": 41, "columns": 67}, {"rows": 3, "columns": 1}, {"rows": 1, "columns": 9}],
        "e = np.exp(inputs['x'] - inputs['x'].max(1, keepdims=True))\n"
        "out['y'] = e / e.sum(1, keepdims=True)\n"
        "out['y'][np.arange(len(e)), inputs['x'].argmax(1)] += 1",
    )


def nearest_job(workloads: Sequence[dict[str, int]] = ()) -> Job:
    """The nearest of some centres for every point."""
    return element_job(
        NEAREST,
        "nearest",
        [
            buffer("x", "input", "features", "points"),
            buffer("centres", "input", "count", "features"),
            {"name": "found", "dtype": "int32", "role": "output", "shape": ["points"]},
            number("points", "points"),
            number("count", "count"),
            number("features", "features"),
        ],
        {"grid": ["ceil_div(points, 32)"], "block": [32]},
        workloads or [{"points": 70, "count": 19, "features": 5}, {"points": 2, "count": 3, "features": 1}],
        "d = ((inputs['x'].T[:, None] - inputs['centres'][None]) ** 2).sum(2)\nout['found'] = d.argmin(1)",
        tolerances={},
    )


def nested_job() -> Job:
    """Sums of rows inside of a loop that writes them."""
    return element_job(
        NESTED,
        "nested",
        [
            buffer("a", "input", "rows", "columns"),
            buffer("y", "output", "rows", "3"),
            number("rows", "rows"),
            number("columns", "columns"),
        ],
        {"grid": ["ceil_div(rows, 32)"], "block": [32]},
        [{"rows": 39, "columns": 21}, {"rows": 5, "columns": 2}],
        "s = inputs['a'].sum(1)\nout['y'] = np.stack([s, 3 * s, 6 * s], 1)",
    )


STENCIL = """\
__kernel void blur(__global float *x, __global float *y, int rows, int columns)
{
    int j = get_global_id(0);
    int i = get_global_id(1);

    if ((i >= 1) && (i < (rows-1)) && (j > 0) && (j < columns - 2))
    {
        y[i*columns + j] = 0.2f * (x[i*columns + j] + x[i*columns + (j-1)] + x[i*columns + (2 + j)]
                + x[(1 + i)*columns + j] + x[(i-1)*columns + j + 0]);
    }
}
"""


def stencil_job(source: str = STENCIL, workloads: Sequence[dict[str, int]] = ()) -> Job:
    """A mean of neighbours, with a border that is left alone."""
    return element_job(
        source,
        "blur",
        [
            buffer("x", "input", "rows", "columns"),
            buffer("y", "inout", "rows", "columns"),
            number("rows", "rows"),
            number("columns", "columns"),
        ],
        {"grid": ["ceil_div(columns, 16)", "ceil_div(rows, 4)"], "block": [16, 4]},
        workloads or [{"rows": 37, "columns": 45}, {"rows": 3, "columns": 4}, {"rows": 1, "columns": 9}],
        "x = inputs['x']\n"
        "out['y'] = inputs['y'].copy()\n"
        "beside = x[1:-1, 1:-2] + x[1:-1, :-3] + x[1:-1, 3:]\n"
        "out['y'][1:-1, 1:-2] = 0.2 * (beside + x[2:, 1:-2] + x[:-2, 1:-2])",
    )


PROJECT = """\
__kernel void project(__global float *a, __global float *q, __global float *r, int rows, int columns, int k) {
    int j = get_global_id(0) + (k + 1);
    if (j < columns) {
        r[j] = 0.0f;
        int i;
        for (i = 0; i < rows; i++) r[j] += q[i] * a[i * columns + j];
        for (i = 0; i < rows; i++) a[i * columns + j] -= q[i] * r[j];
    }
}
"""


def project_job() -> Job:
    """Columns from k + 1 on, less their part along q; every thread of a team reads what one has written."""
    return element_job(
        PROJECT,
        "project",
        [
            buffer("a", "inout", "rows", "columns"),
            buffer("q", "input", "rows"),
            buffer("r", "inout", "columns"),
            number("rows", "rows"),
            number("columns", "columns"),
            number("k", "1"),
        ],
        {"grid": ["ceil_div(columns, 32)"], "block": [32]},
        [{"rows": 23, "columns": 41}, {"rows": 6, "columns": 6}],
        "out['r'], out['a'] = inputs['r'].copy(), inputs['a'].copy()\n"
        "out['r'][2:] = inputs['q'] @ inputs['a'][:, 2:]\n"
        "out['a'][:, 2:] -= np.outer(inputs['q'], out['r'][2:])",
    )
