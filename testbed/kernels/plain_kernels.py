"""Eight kernels of different kinds, each in its plainest spelling, with its job's parts for both back ends.

They were chosen and written down before any spelling of them was measured.
"""

from testbed.kernels.kernel_kinds import LINE, ONE_ROW_A_THREAD, PLANE, ROWS, Argument, Kind


def _buffer(name: str, role: str, *shape: str, dtype: str = "float32") -> Argument:
    return {"name": name, "dtype": dtype, "role": role, "shape": list(shape)}


def _count(*names: str) -> tuple[Argument, ...]:
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
