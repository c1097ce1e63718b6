"""A CUDA job whose arguments are of every kind: structs with addresses, vectors, tables, null pointers."""

from typing import Any

from warpsmith.domain.jobs.job import Job

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp8.h>
namespace deep {
struct Range { float low, high; };
template <typename T> struct Params {
  const T* x;
  float* seen[2];
  uint3 head;
  Range range;
  bool more;
  __nv_bfloat16 scale;
  double shift[2];
};
struct Empty {};
}
__global__ void f(const deep::Params<float> p, deep::Empty none, const float* const* tables, float4 w,
                  const __nv_fp8_e4m3* narrow, const float* bias, const long long* places, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = (__umulhi((unsigned)i, p.head.x) + (unsigned)i) >> p.head.y;
  float v = fminf(fmaxf(p.x[i], p.range.low), p.range.high) * __bfloat162float(p.scale);
  if (bias) v += bias[i];
  if (p.more) v += tables[0][i] + 2.0f * tables[1][i] + ((const float*)places[2])[i];
  y[i] = v + w.z + (float)narrow[i] + (float)p.shift[1] + (float)(h % 3u);
  p.seen[0][i] = v;
}
"""
DIVIDED = ["2**32 * (next_pow2(d) - d) // d + 1", "log2(next_pow2(d))", "d"]
FIELDS: list[dict[str, Any]] = [
    {"name": "x", "role": "pointer", "to": "x"},
    {"name": "seen", "role": "pointer", "count": 2, "to": ["seen", None]},
    {"name": "head", "dtype": "uint32", "values": DIVIDED},
    {
        "name": "range",
        "role": "struct",
        "type": "deep::Range",
        "fields": [
            {"name": "low", "dtype": "float32", "value": -0.5},
            {"name": "high", "dtype": "float32", "value": 0.5},
        ],
    },
    {"name": "more", "dtype": "bool", "value": 1},
    {"name": "scale", "dtype": "bfloat16", "value": 1.5},
    {"name": "shift", "dtype": "float64", "count": 2, "values": [0, "n / 1000"]},
]
ARGUMENTS: list[dict[str, Any]] = [
    {"name": "p", "role": "struct", "type": "deep::Params<float>", "fields": FIELDS},
    {"name": "none", "role": "struct", "type": "deep::Empty", "fields": []},
    {"name": "tables", "role": "pointers", "shape": [2], "to": ["x", "rows"], "offset": 0},
    {"name": "w", "dtype": "float32", "role": "scalar", "values": [1, 2, 0.25, 4]},
    {"name": "narrow", "dtype": "float8_e4m3fn", "role": "input", "shape": ["n"]},
    {"name": "bias", "role": "pointer"},
    {"name": "places", "role": "pointers", "shape": [3], "to": "rows", "step": "n"},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]
BUFFERS: list[dict[str, Any]] = [
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
    {"name": "rows", "dtype": "float32", "role": "input", "shape": [3, "n"]},
    {"name": "seen", "dtype": "float32", "role": "output", "shape": ["n"]},
]
REFERENCE = """
def reference(inputs, dims):
    p, x, rows = inputs["p"], inputs["x"], inputs["rows"]
    head = np.arange(dims["n"]) // p["head"][2] % 3
    v = np.clip(x, p["range"]["low"], p["range"]["high"]) * p["scale"]
    v = v + x + 2.0 * rows[0] + rows[2]
    return {"seen": v, "y": v + inputs["w"][2] + inputs["narrow"] + p["shift"][1] + head}
"""


def every_kind(**changes: Any) -> Job:
    """The job; `changes` are fields of its kernel."""
    kernel = {
        "backend": "cuda",
        "source": SOURCE,
        "entry": "f",
        "arguments": ARGUMENTS,
        "buffers": BUFFERS,
        "launch": {"grid": ["ceil_div(n, 128)"], "block": [128]},
    }
    data = {
        "name": "every kind",
        "kernel": kernel | changes,
        "workloads": [{"dimensions": {"n": 5000, "d": 7}}],
    }
    return Job.model_validate(data | {"reference": {"kind": "numpy", "source": REFERENCE}})
