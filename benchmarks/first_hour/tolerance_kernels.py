"""Twelve correct kernels that sum, their NumPy references, and small mistakes in them."""

from dataclasses import dataclass, field
from typing import Any

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.job import DEFAULT_TOLERANCES, Job

HEAD = """
#if HALF
#define REAL half
#define AT(p, i) vload_half((i), (p))
#define PUT(p, i, v) vstore_half_rte((v), (i), (p))
#else
#define REAL float
#define AT(p, i) (p)[i]
#define PUT(p, i, v) (p)[i] = (v)
#endif
#ifndef TERMS
#define TERMS k
#endif
#ifndef COUNT
#define COUNT k
#endif
#ifndef EPS
#define EPS 1.0e-5f
#endif
#ifndef ROUND
#define ROUND(x) (x)
#endif
"""
ROW = "  const int row = get_global_id(0);\n  if (row >= m) return;\n"
SUM = "  float sum = 0.0f;\n  for (int i = 0; i < TERMS; ++i) sum = ROUND(sum + {});\n"


Buffers = dict[str, tuple[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Example:
    """One kernel: buffers `name: (role, shape)`, body, reference, and how its inputs are drawn."""

    name: str
    buffers: Buffers
    body: str
    reference: str
    chosen: bool = False
    """The constants were chosen on it."""
    draw: dict[str, Any] | None = None
    columns: int = 1
    """Extent of `n`, which a second thread index runs over."""
    rows: int = 64

    def job(self, dtype: Dtype, k: int, *, fixed: bool = False, defines: tuple[str, ...] = ()) -> Job:
        """The job, without tolerances.

        Args:
            fixed: with the tolerance of its type, whatever the outputs hold.
            defines: macros that make a mistake.
        """
        arguments: list[dict[str, Any]] = []
        for name, (role, shape) in self.buffers.items():
            drawn = {"draw": self.draw} if self.draw and role == "input" else {}
            arguments.append({"name": name, "dtype": dtype, "role": role, "shape": list(shape), **drawn})
        words = {"output": "__global REAL* ", "inout": "__global REAL* ", "input": "__global const REAL* "}
        taken = [words[role] + name for name, (role, _) in self.buffers.items()] + ["int m", "int n", "int k"]
        arguments += [{"name": d, "dtype": "int32", "role": "scalar", "value": d} for d in "mnk"]
        macros = [f"#define HALF {int(dtype is Dtype.FLOAT16)}", *(f"#define {d}" for d in defines)]
        source = "\n".join(macros) + HEAD + f"__kernel void f({', '.join(taken)}) {{\n{self.body}}}\n"
        written = [name for name, (role, _) in self.buffers.items() if role != "input"]
        kernel = {
            "backend": "opencl",
            "source": source,
            "entry": "f",
            "arguments": arguments,
            "launch": {"grid": ["ceil_div(m, 16)", "n"], "block": [16, 1]},
        }
        reference = "import numpy as np\n\ndef reference(inputs, dims):\n" + self.reference
        fields: dict[str, Any] = {
            "name": self.name,
            "kernel": kernel,
            "workloads": [{"dimensions": {"m": self.rows, "n": self.columns, "k": k}}],
            "reference": {"kind": "numpy", "source": reference},
        }
        if fixed:
            fields["tolerances"] = dict.fromkeys(written, DEFAULT_TOLERANCES[dtype])
        return Job.model_validate(fields)


def _rows(body: str) -> str:
    return ROW + "#define X(i) AT(x, row * k + (i))\n" + body


PER_ROW: Buffers = {"x": ("input", ("m", "k")), "y": ("output", ("m",))}
SAME: Buffers = {"x": ("input", ("m", "k")), "y": ("output", ("m", "k"))}
PRODUCT: Buffers = {"a": ("input", ("m", "k")), "b": ("input", ("k", "n")), "c": ("output", ("m", "n"))}
AT_BOTH = ROW + "  const int column = get_global_id(1);\n"
POSITIVE = {"distribution": "uniform", "low": 0.0, "high": 1.0}
TOP = "  float top = -INFINITY;\n  for (int i = 0; i < k; ++i) top = fmax(top, X(i));\n"

EXAMPLES = {
    e.name: e
    for e in (
        Example(
            "gemm",
            PRODUCT,
            AT_BOTH
            + SUM.format("AT(a, row * k + i) * AT(b, i * n + column)")
            + "  PUT(c, row * n + column, sum);\n",
            "    return {'c': inputs['a'] @ inputs['b']}\n",
            chosen=True,
            columns=256,
            rows=256,
        ),
        Example(
            "one_dot",
            {"x": ("input", ("k",)), "z": ("input", ("k",)), "y": ("output", ("m",))},
            ROW + SUM.format("AT(x, i) * AT(z, i)") + "  PUT(y, row, sum);\n",
            "    return {'y': np.array([inputs['x'] @ inputs['z']])}\n",
            chosen=True,
            rows=1,
        ),
        Example(
            "row_sum",
            PER_ROW,
            _rows(SUM.format("X(i)") + "  PUT(y, row, sum);\n"),
            "    return {'y': inputs['x'].sum(axis=1)}\n",
            chosen=True,
            draw=POSITIVE,
        ),
        Example(
            "softmax",
            SAME,
            _rows(
                TOP
                + SUM.format("exp(X(i) - top)")
                + "  for (int i = 0; i < k; ++i) PUT(y, row * k + i, exp(X(i) - top) / sum);\n"
            ),
            "    e = np.exp(inputs['x'] - inputs['x'].max(axis=1, keepdims=True))\n"
            "    return {'y': e / e.sum(axis=1, keepdims=True)}\n",
            chosen=True,
        ),
        Example(
            "gemm_in_place",
            {"a": ("input", ("m", "k")), "b": ("input", ("k", "n")), "c": ("inout", ("m", "n"))},
            AT_BOTH
            + "  float sum = AT(c, row * n + column) * 2.1f;\n"
            + "  for (int i = 0; i < TERMS; ++i)\n"
            + "    sum = ROUND(sum + 1.5f * AT(a, row * k + i) * AT(b, i * n + column));\n"
            + "  PUT(c, row * n + column, sum);\n",
            "    return {'c': np.float32(2.1) * inputs['c'] + 1.5 * inputs['a'] @ inputs['b']}\n",
            columns=128,
            rows=128,
        ),
        Example(
            "gemv",
            {"a": ("input", ("m", "k")), "x": ("input", ("k",)), "y": ("output", ("m",))},
            ROW + SUM.format("AT(a, row * k + i) * AT(x, i)") + "  PUT(y, row, sum);\n",
            "    return {'y': inputs['a'] @ inputs['x']}\n",
            rows=1000,
        ),
        Example(
            "variance",
            {**PER_ROW, "mean": ("output", ("m",))},
            _rows(
                SUM.format("X(i)")
                + "  const float middle = sum / COUNT;\n  float squares = 0.0f;\n"
                + "  for (int i = 0; i < k; ++i) squares += (X(i) - middle) * (X(i) - middle);\n"
                + "  PUT(y, row, squares / COUNT);\n  PUT(mean, row, middle);\n"
            ),
            "    return {'y': inputs['x'].var(axis=1), 'mean': inputs['x'].mean(axis=1)}\n",
            rows=500,
        ),
        Example(
            "layer_norm",
            SAME,
            _rows(
                SUM.format("X(i)")
                + "  const float middle = sum / k;\n  float squares = 0.0f;\n"
                + "  for (int i = 0; i < k; ++i) squares += (X(i) - middle) * (X(i) - middle);\n"
                + "  const float scale = rsqrt(squares / COUNT + EPS);\n"
                + "  for (int i = 0; i < k; ++i) PUT(y, row * k + i, (X(i) - middle) * scale);\n"
            ),
            "    x = inputs['x']\n"
            "    d = x - x.mean(axis=1, keepdims=True)\n"
            "    return {'y': d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)}\n",
        ),
        Example(
            "rms_norm",
            SAME,
            _rows(
                SUM.format("X(i) * X(i)")
                + "  const float scale = rsqrt(sum / COUNT + EPS);\n"
                + "  for (int i = 0; i < k; ++i) PUT(y, row * k + i, X(i) * scale);\n"
            ),
            "    x = inputs['x']\n"
            "    return {'y': x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)}\n",
        ),
        Example(
            "log_sum_exp",
            PER_ROW,
            _rows(TOP + SUM.format("exp(X(i) - top)") + "  PUT(y, row, top + log(sum));\n"),
            "    top = inputs['x'].max(axis=1)\n"
            "    return {'y': top + np.log(np.exp(inputs['x'] - top[:, None]).sum(axis=1))}\n",
            rows=400,
        ),
        Example(
            "cosine",
            {"x": ("input", ("m", "k")), "z": ("input", ("m", "k")), "y": ("output", ("m",))},
            _rows(
                "  float dot_ = 0.0f, one = 0.0f, two = 0.0f;\n"
                "  for (int i = 0; i < TERMS; ++i) {\n    const float u = X(i), v = AT(z, row * k + i);\n"
                "    dot_ = ROUND(dot_ + u * v);\n    one += u * u;\n    two += v * v;\n  }\n"
                "  PUT(y, row, dot_ * rsqrt(one) * rsqrt(two));\n"
            ),
            "    x, z = inputs['x'], inputs['z']\n"
            "    return {'y': (x * z).sum(1) / np.sqrt((x * x).sum(1) * (z * z).sum(1))}\n",
            rows=800,
        ),
        Example(
            "stencil_sum",
            {"x": ("input", ("m", "n + k")), "w": ("input", ("k",)), "y": ("output", ("m", "n"))},
            AT_BOTH
            + SUM.format("AT(x, row * (n + k) + column + i) * AT(w, i)")
            + "  PUT(y, row * n + column, sum);\n",
            "    w = np.lib.stride_tricks.sliding_window_view(inputs['x'], dims['k'], axis=1)[:, :-1]\n"
            "    return {'y': w @ inputs['w']}\n",
            columns=100,
            rows=40,
        ),
    )
}


@dataclass(frozen=True)
class Mutant:
    """A mistake that shows as a small relative error."""

    name: str
    of: str
    k: int
    defines: tuple[str, ...]
    dtype: Dtype = field(default=Dtype.FLOAT32)


HALF_ROUND = "ROUND(x) as_float((as_int(x) + 0x1000) & ~0x1fff)"
MUTANTS = (
    Mutant("the last of 256 products is dropped", "gemm", 256, ("TERMS (k - 1)",)),
    Mutant("the last of 4096 products is dropped", "gemv", 4096, ("TERMS (k - 1)",)),
    Mutant("the last of 4096 positive terms is dropped", "row_sum", 4096, ("TERMS (k - 1)",)),
    Mutant("the last of 16384 positive terms is dropped", "row_sum", 16384, ("TERMS (k - 1)",)),
    Mutant("a norm of 1024 divides by one less", "rms_norm", 1024, ("COUNT (k - 1)",)),
    Mutant("a layer norm of 1024 divides by one less", "layer_norm", 1024, ("COUNT (k - 1)",)),
    Mutant("a variance of 4096 divides by one less", "variance", 4096, ("COUNT (k - 1)",)),
    Mutant("a float32 sum is done in half", "gemm", 256, (HALF_ROUND,)),
    Mutant("a float32 cosine is done in half", "cosine", 1024, (HALF_ROUND,)),
    Mutant("epsilon is 1e-3 in place of 1e-5", "rms_norm", 1024, ("EPS 1.0e-3f",)),
    Mutant("a softmax of 1024 drops a term of its sum", "softmax", 1024, ("TERMS (k - 1)",)),
    Mutant("a softmax of 4096 drops a term of its sum", "softmax", 4096, ("TERMS (k - 1)",)),
    Mutant("a log-sum-exp of 1024 drops a term", "log_sum_exp", 1024, ("TERMS (k - 1)",)),
    Mutant("products cut to 15 bits", "gemm", 256, ("ROUND(x) as_float(as_int(x) & ~0x1ff)",)),
    Mutant("sums cut to 18 bits", "stencil_sum", 256, ("ROUND(x) as_float(as_int(x) & ~0x3f)",)),
    Mutant("a half softmax of 256 drops a term", "softmax", 256, ("TERMS (k - 1)",), Dtype.FLOAT16),
    Mutant("a half product drops the last of 256", "gemm", 256, ("TERMS (k - 1)",), Dtype.FLOAT16),
)
