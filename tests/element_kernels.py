"""Kernels of one guarded element a thread, as people write them, with NumPy references."""

from collections.abc import Sequence
from typing import Any

from warpsmith.domain.job import Job

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
