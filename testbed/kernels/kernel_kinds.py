"""What the kernels of the style corpus compute, and how their bodies are laid out."""

from collections.abc import Mapping
from dataclasses import dataclass

Argument = Mapping[str, str | list[str]]


@dataclass(frozen=True)
class Kind:
    """A kernel without its parameter list; words in angle brackets are the back end's."""

    name: str
    arguments: tuple[Argument, ...]
    head: str
    body: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    workloads: tuple[dict[str, int], ...]
    reference: str
    element: str = "float"

    def __hash__(self) -> int:
        return hash(self.name)


def _buffer(name: str, role: str, *shape: str, dtype: str = "float32") -> Argument:
    return {"name": name, "dtype": dtype, "role": role, "shape": list(shape)}


def _count(*names: str) -> tuple[Argument, ...]:
    return tuple({"name": n, "dtype": "int32", "role": "scalar", "value": n} for n in names)


def _scale(value: str = "2.5") -> Argument:
    return {"name": "a", "dtype": "float32", "role": "scalar", "value": value}


LINE = (("ceil_div(n, 64)",), ("64",), ({"n": 64}, {"n": 131}))
PLANE = (("ceil_div(w, 16)", "ceil_div(h, 8)"), ("16", "8"), ({"h": 16, "w": 32}, {"h": 13, "w": 37}))
ROWS = (("r",), ("32",), ({"r": 4, "n": 64}, {"r": 3, "n": 83}))
ONE_ROW_A_THREAD = (("ceil_div(r, 32)",), ("32",), ({"r": 32, "n": 8}, {"r": 35, "n": 7}))


def _returning(expression: str, name: str = "y") -> str:
    head = "import numpy as np\ndef reference(inputs, dims):\n    x = inputs['x']\n"
    return f"{head}    return {{'{name}': {expression}}}\n"


_SHIFTED = (
    "import numpy as np\ndef reference(inputs, dims):\n    x = inputs['x']\n    y = np.zeros_like(x)\n"
    "    y[1:-1, 1:-1] = (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]) * 0.25\n"
    "    return {'y': y}\n"
)
_TREE = """{
  <shared> float part[32];
  int row = <bid.x>, lane = <tid.x>;
  float sum = 0.0f;
  for (int j = lane; j < n; j += <size.x>) sum += x[row * n + j];
  part[lane] = sum;
  <sync>;
  for (int s = <size.x> / 2; s > 0; s >>= 1) {
    if (lane < s) part[lane] += part[lane + s];
    <sync>;
  }
  if (lane == 0) y[row] = part[0];
}
"""
_CENTRED = """{
  <shared> float part[32];
  int row = <bid.x>, lane = <tid.x>;
  float sum = 0.0f;
  for (int j = lane; j < n; j += <size.x>) sum += x[row * n + j];
  part[lane] = sum;
  <sync>;
  sum = 0.0f;
  for (int k = 0; k < <size.x>; k++) sum += part[k];
  for (int j = lane; j < n; j += <size.x>) y[row * n + j] = (x[row * n + j] - sum / n) * w[j];
}
"""
_TILED = """{
  <shared> float left[TILE][TILE], right[TILE][TILE];
  int col = <bid.x> * TILE + <tid.x>;
  int row = <bid.y> * TILE + <tid.y>;
  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    left[<tid.y>][<tid.x>] = row < n && k0 + <tid.x> < n ? x[row * n + k0 + <tid.x>] : 0.0f;
    right[<tid.y>][<tid.x>] = col < n && k0 + <tid.y> < n ? z[(k0 + <tid.y>) * n + col] : 0.0f;
    <sync>;
    for (int k = 0; k < TILE; k++)
      sum += left[<tid.y>][k] * right[k][<tid.x>];
    <sync>;
  }
  if (row < n && col < n)
    y[row * n + col] = sum;
}
"""

_XY = (_buffer("x", "input", "n"), _buffer("y", "output", "n"))
_PLANES = (_buffer("x", "input", "h", "w"), _buffer("y", "output", "h", "w"), *_count("h", "w"))
_SUMS = (_buffer("x", "input", "r", "n"), _buffer("y", "output", "r"), *_count("r", "n"))
_ROWS = (_buffer("x", "input", "r", "n"), _buffer("y", "output", "r", "n"), *_count("n"))
_SQUARE = (_buffer("x", "input", "n", "n"), _buffer("z", "input", "n", "n"), _buffer("y", "output", "n", "n"))
_PRODUCT = "import numpy as np\ndef reference(inputs, dims):\n    return {'y': inputs['x'] @ inputs['z']}\n"

KINDS = (
    Kind(
        "a guard around the body",
        (*_XY, *_count("n")),
        "",
        "{\n  int i = <gid.x>;\n  if (i < n)\n  {\n    y[i] = 2.0f * x[i];\n  }\n}\n",
        *LINE,
        _returning("2.0 * x"),
    ),
    Kind(
        "a guard that returns",
        (*_XY, _scale(), *_count("n")),
        "",
        "{ const int i = <gid.x>, last = n; if (i >= last) return; float v = x[i], w = a; y[i] = v*w-v/w; }",
        *LINE,
        _returning("x * 2.5 - x / 2.5"),
    ),
    Kind(
        "a grid that is the global size, and a third axis",
        (*_XY, *_count("n")),
        "",
        "{\n  int i = <gid.x>;\n  if (i >= n) return;\n  y[i] = 3.0f * x[i];\n}\n",
        ("n",),
        ("64", "1", "2"),
        ({"n": 64}, {"n": 131}),
        _returning("3.0 * x"),
    ),
    Kind(
        "in place, with a function beside it",
        (_buffer("y", "inout", "n"), _buffer("x", "input", "n"), *_count("n")),
        "<inline> float half_of(float v) { return v / 2; }\n",
        "{\n  size_t i = <gid.x>;\n  if (i < (size_t)n) y[i] += half_of(x[i]);\n}\n",
        *LINE,
        _returning("inputs['y'] + x / 2"),
    ),
    Kind(
        "a stride over the grid",
        (*_XY, *_count("n")),
        "",
        "{\n  for (int i = <gid.x>; i < n; i += <all.x>)\n"
        "    y[i] = exp<f>(x[i]) / (1.0f + exp<f>(x[i]));\n}\n",
        *LINE,
        _returning("np.exp(x) / (1 + np.exp(x))"),
    ),
    Kind(
        "whole numbers",
        (
            _buffer("x", "input", "n", dtype="uint32"),
            _buffer("y", "output", "n", dtype="uint32"),
            *_count("n"),
        ),
        "",
        "{\n  unsigned int i = <gid.x>;\n  if (i >= n) return;\n  unsigned s = 0;\n"
        "  for (int j = 0; j < 5; ++j) s += x[i] >> j;\n  y[i] = s;\n}\n",
        *LINE,
        _returning("sum((x.astype(np.int64) >> j) for j in range(5))"),
        element="unsigned int",
    ),
    Kind(
        "a row a thread",
        _SUMS,
        "",
        "{\n  int i = <gid.x>;\n  if (i < r) {\n    int j;\n    float sum = 0.0f;\n"
        "    for (j = 0; j < n; j++)\n"
        "      sum += x[i * n + j];\n    y[i] = sum;\n  }\n}\n",
        *ONE_ROW_A_THREAD,
        _returning("x.sum(axis=1)"),
    ),
    Kind(
        "a row a thread, no braces",
        _SUMS,
        "#define AT(i, j) x[(i) * n + (j)]\n",
        "{ int i=<gid.x>; if(i>=r) return; float m=AT(i,0);"
        " for(int j=1;j<n;j++) if(AT(i,j)>m) m=AT(i,j); else continue; y[i]=m; }",
        *ONE_ROW_A_THREAD,
        _returning("x.max(axis=1)"),
    ),
    Kind(
        "a row a block",
        _ROWS,
        "",
        "{\n  int row = <bid.x>;\n  for (int j = <tid.x>; j < n; j += <size.x>)\n"
        "    y[row * n + j] = x[row * n + j] / 3.0f;\n}\n",
        *ROWS,
        _returning("x / 3"),
    ),
    Kind(
        "a row a block, by a pointer to it",
        _ROWS,
        "",
        "{\n  <g> const float *from=x+<bid.x>*n;\n  <g> float*to = y+<bid.x>*n;\n"
        "  for (int j=<tid.x>;j<n;j+=<size.x>){float v=from[j];to[j]=v*v+1;}\n}\n",
        *ROWS,
        _returning("x * x + 1"),
    ),
    Kind(
        "a row read twice",
        (_buffer("w", "input", "n"), *_ROWS),
        "",
        _CENTRED,
        *ROWS,
        _returning("(x - x.mean(axis=1, keepdims=True)) * inputs['w']"),
    ),
    Kind("a tree over a block", _SUMS, "", _TREE, *ROWS, _returning("x.sum(axis=1)")),
    Kind(
        "a stencil",
        _PLANES,
        "",
        "{\n  int j = <gid.x>, i = <gid.y>;\n  if (i < h && j < w)\n"
        "    if (i == 0 || j == 0 || i == h - 1 || j == w - 1) y[i*w + j] = 0;\n    else"
        " y[i*w + j] = (x[i*w + j - 1] + x[i*w + j + 1] + x[(i - 1)*w + j] + x[(i + 1)*w + j]) * .25f;\n}\n",
        *PLANE,
        _SHIFTED,
    ),
    Kind(
        "a stencil that leaves its border alone",
        (_buffer("x", "input", "h", "w"), _buffer("y", "inout", "h", "w"), *_count("h", "w")),
        "",
        "{\n  int j = <gid.x>;\n  int i = <gid.y>;\n"
        "  if ((i > 0) && (i < (h - 1)) && (j > 0) && (j < (w - 1)))\n  {\n"
        "    y[i*w + j] = (x[i*w + (j - 1)] + x[i*w + (j + 1)] + x[(i - 1)*w + j] + x[(i + 1)*w + j])"
        " * .25f;\n  }\n}\n",
        *PLANE,
        _SHIFTED.replace("np.zeros_like(x)", "np.copy(inputs['y'])"),
    ),
    Kind(
        "a place by division",
        (_buffer("x", "input", "r", "n"), _buffer("y", "output", "n", "r"), *_count("r", "n")),
        "",
        "{\n  int i = <gid.x>;\n  if (i < r * n) {\n    int row = i / n, j = i % n;\n"
        "    y[j * r + row] = x[i];\n  }\n}\n",
        ("ceil_div(r * n, 64)",),
        ("64",),
        ({"r": 4, "n": 64}, {"r": 3, "n": 83}),
        _returning("x.T"),
    ),
    Kind(
        "a plane",
        _PLANES,
        "",
        "{\n  int j = <gid.x>;\n  int i = <gid.y>;\n\n  if ((i < h) && (j < w))\n  {\n"
        "    y[i * w + j] = sqrt<f>(x[i * w + j] * x[i * w + j]);\n  }\n}\n",
        *PLANE,
        _returning("np.abs(x)"),
    ),
    Kind(
        "a product",
        (*_SQUARE, *_count("n")),
        "",
        "{\n  int j = <gid.x>;\n  int i = <gid.y>;\n  if ((i < n) && (j < n))\n  {\n"
        "    y[i * n + j] = 0.0f;\n    int k;\n"
        "    for (k = 0; k < n; ++k)\n      y[i * n + j] += x[i * n + k] * z[k * n + j];\n  }\n}\n",
        ("ceil_div(n, 16)", "ceil_div(n, 8)"),
        ("16", "8"),
        ({"n": 16}, {"n": 21}),
        _PRODUCT,
    ),
    Kind(
        "a product by tiles",
        (*_SQUARE, *_count("n")),
        "#define TILE 8 // both ways\n",
        _TILED,
        ("ceil_div(n, 8)", "ceil_div(n, 8)"),
        ("8", "8"),
        ({"n": 16}, {"n": 21}),
        _PRODUCT,
    ),
)
