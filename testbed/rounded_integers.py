"""Kernels that round floats to integers, with candidates that are as right in another order of operations.

Each has candidates that are wrong as well.

The kernels are this project's own; what they compute is what quantisation does in inference: absolute maximum
of a row, of a group of 32, or a given scale, and places in a histogram or of a fixed point.
"""

from dataclasses import dataclass

from warpsmith.domain.jobs.job import Job
from warpsmith.testing.jobs import scale_job

ROWS, COLUMNS = 64, 512


@dataclass(frozen=True)
class Rounding:
    """A kernel over a matrix `x` of rows and columns, one thread for each row, that writes integers `q`."""

    name: str
    dtype: str
    """Of `q`."""
    per_row: str
    """Statements before the loop over the columns."""
    own: str
    """The integer of the element `v`, as the user's kernel computes it."""
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    reference: str
    """The same of `x` (float64, rows x columns) in NumPy."""

    def job(self) -> Job:
        """The user's kernel with its reference."""
        arguments = [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
            {"name": "q", "dtype": self.dtype, "role": "output", "shape": ["rows", "columns"]},
            {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
            {"name": "columns", "dtype": "int32", "role": "scalar", "value": "columns"},
        ]
        kernel = {
            "backend": "opencl",
            "source": self.source(self.own),
            "entry": "quantise",
            "arguments": arguments,
            "launch": {"grid": ["ceil_div(rows, 16)"], "block": [16]},
        }
        reference = (
            "def reference(inputs, dims):\n"
            "    x = inputs['x'].reshape(dims['rows'], dims['columns'])\n"
            f"    q = {self.reference}\n"
            "    return {'q': q.astype(np.int64)}\n"
        )
        return scale_job(
            name=f"rounding-{self.name}",
            kernel=kernel,
            workloads=[{"dimensions": {"rows": ROWS, "columns": COLUMNS}}],
            reference={"kind": "numpy", "source": reference},
            tolerances={},
            parameters=[],
        )

    def source(self, element: str) -> str:
        """The kernel with that expression of an element."""
        made = {"int8": "char", "uint8": "uchar", "int32": "int"}[self.dtype]
        return (
            f"__kernel void quantise(__global const float* x, __global {made}* q, int rows, int columns) {{\n"
            "  int row = get_global_id(0);\n"
            "  if (row >= rows) return;\n"
            f"  {self.per_row}\n"
            "  for (int i = 0; i < columns; ++i) {\n"
            "    float v = x[row * columns + i];\n"
            f"    q[row * columns + i] = ({made})({element});\n"
            "  }\n"
            "}\n"
        )


_TOP = (
    "float top = 0.0f; for (int i = 0; i < columns; ++i) top = fmax(top, fabs(x[row * columns + i])); "
    "top = fmax(top, 1e-20f);"
)
_TOP_OF_ROW = "np.maximum(np.abs(x).max(axis=1, keepdims=True), 1e-20)"

ROUNDINGS = (
    Rounding(
        "row_maximum",
        "int8",
        f"{_TOP} float scale = top / 127.0f;",
        "rint(v / scale)",
        ("rint(v * (127.0f / top))", "rint(v * (1.0f / scale))", "rint(v * 127.0f / top)"),
        ("(int)(v / scale)", "rint(v / scale + 0.01f)", "rint(v / scale) + (i % 97 == 0 ? 1 : 0)"),
        f"np.rint(x / ({_TOP_OF_ROW} / 127.0))",
    ),
    Rounding(
        "zero_point",
        "uint8",
        "float scale = 0.0313f, zero = 128.0f;",
        "clamp(rint(v / scale) + zero, 0.0f, 255.0f)",
        (
            "clamp(rint(v * (1.0f / scale)) + zero, 0.0f, 255.0f)",
            "clamp(rint(v / scale + zero), 0.0f, 255.0f)",
            "clamp(rint(fma(v, 1.0f / scale, zero)), 0.0f, 255.0f)",
        ),
        (
            "clamp(v / scale + zero, 0.0f, 255.0f)",
            "clamp(rint(v * 31.9f) + zero, 0.0f, 255.0f)",
            "clamp(rint(v / scale) + zero, 1.0f, 254.0f)",
        ),
        "np.clip(np.rint(x / np.float64(np.float32(0.0313))) + 128.0, 0, 255)",
    ),
    Rounding(
        "away_from_zero",
        "int8",
        f"{_TOP} float d = top / 7.0f;",
        "round(v / d)",
        (
            "round(v * (1.0f / d))",
            "round(v * (7.0f / top))",
            "v < 0.0f ? -floor(0.5f - v / d) : floor(v / d + 0.5f)",
        ),
        ("v / d", "floor(v / d)", "round(v / (d * 1.001f))"),
        f"np.sign(x) * np.floor(np.abs(x) / ({_TOP_OF_ROW} / 7.0) + 0.5)",
    ),
    Rounding(
        "bins",
        "int32",
        "float low = -4.0f, width = 0.03f;",
        "clamp(floor((v - low) / width), 0.0f, 255.0f)",
        (
            "clamp(floor((v - low) * (1.0f / width)), 0.0f, 255.0f)",
            "clamp(floor(v / width - low / width), 0.0f, 255.0f)",
            "clamp(floor(fma(v, 1.0f / width, 4.0f / width)), 0.0f, 255.0f)",
        ),
        (
            "clamp(rint((v - low) / width), 0.0f, 255.0f)",
            "clamp(floor((v - low) / 0.0301f), 0.0f, 255.0f)",
            "clamp(floor((v - low) / width), 0.0f, 254.0f)",
        ),
        "np.clip(np.floor((x + 4.0) / np.float64(np.float32(0.03))), 0, 255)",
    ),
    Rounding(
        "fixed_point",
        "int32",
        "float factor = 3000.0f, shift = 0.1f;",
        "rint((v + shift) * factor)",
        (
            "rint(v * factor + shift * factor)",
            "rint(fma(v, factor, shift * factor))",
            "rint((v + shift) * 1000.0f * 3.0f)",
        ),
        (
            "rint(v * factor)",
            "rint((v + shift) * factor * 1.001f)",
            "((int)rint((v + shift) * factor)) & ~1",
        ),
        "np.rint((x + np.float64(np.float32(0.1))) * 3000.0)",
    ),
)
