"""Jobs whose arguments are more than numbers and buffers of common types, measured and checked on PoCL."""

from collections.abc import Callable
from typing import Any

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import BaselineResult

Measure = Callable[[Job], BaselineResult]


@pytest.fixture(scope="module")
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


@pytest.fixture
def measure(ports: SessionPorts) -> Measure:
    """The baseline of a job: compiled, checked on all its cases, timed."""

    def run(job: Job) -> BaselineResult:
        session = DeviceSession(job, ports)
        found = measure_baseline(session)
        session.close()
        return found

    return run


def job_of(source: str, arguments: list[dict[str, Any]], reference: str, **fields: Any) -> Job:
    """A job of one work-item an element of `n`."""
    kernel = {
        "backend": "opencl",
        "source": source,
        "entry": "f",
        "arguments": arguments,
        "launch": {"grid": ["ceil_div(n, 64)"], "block": [64]},
    }
    body = "\n".join(f"    {line}" for line in reference.splitlines())
    python = {"kind": "numpy", "source": f"def reference(inputs, dims):\n{body}\n"}
    data = {"name": "f", "kernel": kernel, "workloads": [{"dimensions": {"n": 5000}}], "reference": python}
    return Job.model_validate(data | fields)


E4M3 = """
float decoded(uchar v) {
  int e = (v >> 3) & 15, m = v & 7;
  float size = e ? ldexp(1.0f + m / 8.0f, e - 7) : ldexp((float)m, -9);
  return v & 128 ? -size : size;
}
uchar encoded(float x) {
  uchar best = 0;
  float far = INFINITY;
  for (int v = 0; v < 255; v++) {
    if ((v & 127) == 127) continue;
    float d = fabs(decoded(v) - x);
    if (d < far || (d == far && !(v & 1))) { far = d; best = v; }
  }
  return best;
}
__kernel void f(__global const uchar* x, __global const uchar* m, __global uchar* y, __global float* z,
                __global uchar* large, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  float v = SCALE * decoded(x[i]);
  y[i] = encoded(v);
  z[i] = m[i] ? v : 0.0f;
  large[i] = fabs(v) > 1.0f;
}
"""
SHORT_ARGUMENTS: list[dict[str, Any]] = [
    {"name": "x", "dtype": "float8_e4m3fn", "role": "input", "shape": ["n"]},
    {"name": "m", "dtype": "bool", "role": "input", "shape": ["n"]},
    {"name": "y", "dtype": "float8_e4m3fn", "role": "output", "shape": ["n"]},
    {"name": "z", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "large", "dtype": "bool", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]
SHORT_REFERENCE = """v = 0.75 * inputs["x"]
assert inputs["m"].dtype == bool
return {"y": v, "z": np.where(inputs["m"], v, 0.0), "large": np.abs(v) > 1.0}"""


@pytest.mark.parametrize(("factor", "words"), [("0.75f", ""), ("0.5f", "y is wrong")])
def test_eight_bit_floats_and_booleans(measure: Measure, factor: str, words: str) -> None:
    source = f"#define SCALE {factor}\n{E4M3}"
    found = measure(job_of(source, SHORT_ARGUMENTS, SHORT_REFERENCE))
    assert (words in found.refused) if words else found.refused == ""
    if not words:
        assert len({c.family for c in found.cases}) > 4


STRUCTS = """
typedef struct { float low, high; } range_t;
typedef struct { uint heads; float scale; range_t ranges[2]; int4 shift; char last; } params_t;
uint divided(uint n, uint3 d) { return (mul_hi(n, d.x) + n) >> d.y; }
__kernel void f(__global const float* x, __global const float* bias, const params_t p, const uint3 head,
                const float4 w, __global float* y, __global const float* again, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  uint h = divided(i, head) % p.heads;
  float v = clamp(x[i], p.ranges[0].low, p.ranges[0].high) * p.scale + w.z;
  if (bias) v += bias[i];
  y[i] = v + (float)((int)h + p.shift.w + p.last) + again[i];
}
"""
RANGES = [
    {"name": "low", "dtype": "float32", "value": -0.5},
    {"name": "high", "dtype": "float32", "value": "1 / 2"},
]
PARAMS = {
    "name": "p",
    "role": "struct",
    "type": "params_t",
    "fields": [
        {"name": "heads", "dtype": "uint32", "value": 3},
        {"name": "scale", "dtype": "float32", "value": "n / 2500"},
        {"name": "ranges", "role": "struct", "type": "range_t", "count": 2, "fields": RANGES},
        {"name": "shift", "dtype": "int32", "values": [1, 2, 3, -4]},
        {"name": "last", "dtype": "int8", "value": -7},
    ],
}
DIVIDED = ["2**32 * (next_pow2(d) - d) // d + 1", "log2(next_pow2(d))", "d"]
STRUCT_ARGUMENTS: list[dict[str, Any]] = [
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
    {"name": "bias", "role": "pointer"},
    PARAMS,
    {"name": "head", "dtype": "uint32", "role": "scalar", "values": DIVIDED},
    {"name": "w", "dtype": "float32", "role": "scalar", "values": [1, 2, 0.25, 4]},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "again", "role": "pointer", "to": "x"},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]
STRUCT_REFERENCE = """x, p = inputs["x"], inputs["p"]
assert "bias" not in inputs and p["ranges"]["low"] == (-0.5, -0.5)
head = np.arange(dims["n"]) // inputs["head"][2] % p["heads"]
held = np.clip(x, p["ranges"]["low"][0], p["ranges"]["high"][0]) * p["scale"] + inputs["w"][2]
return {"y": held + head + p["shift"][3] + p["last"] + x}"""
DIMENSIONS = {"workloads": [{"dimensions": {"n": 5000, "d": 7}}]}


def test_structs_vectors_and_null_pointers(measure: Measure) -> None:
    found = measure(job_of(STRUCTS, STRUCT_ARGUMENTS, STRUCT_REFERENCE, **DIMENSIONS))
    assert found.refused == ""
    assert any(c.neighbour_of for c in found.cases), "other dimensions give other values in structs"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("char last", "int4 more; char last", "p_has_64_bytes_in_the_job"),
        ("uint heads; float scale", "float scale; uint heads", "p_heads_is_at_byte_0_in_the_job"),
        ("const uint3 head", "const uint2 head", "argument 3 was refused"),
    ],
)
def test_a_struct_that_is_laid_out_otherwise_is_refused(
    measure: Measure, old: str, new: str, words: str
) -> None:
    source = STRUCTS.replace(old, new).replace(
        "uint divided(uint n, uint2 d)", "uint divided(uint n, uint3 d)"
    )
    source = source.replace("divided(i, head)", "head.x") if "uint2" in new else source
    found = measure(job_of(source, STRUCT_ARGUMENTS, STRUCT_REFERENCE, **DIMENSIONS))
    assert words in found.refused


SCATTER = """
__kernel void f(__global const int* slots, __global const int* offsets, __global const uchar* keep,
                __global const float* x, __global float* y, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  int begin = offsets[i], end = offsets[i + 1];
  float sum = 0.0f;
  for (int j = begin; j < end; j++) sum += x[j];
  y[SLOT] = keep[i] ? sum : -1.0f;
}
"""
SCATTER_ARGUMENTS: list[dict[str, Any]] = [
    {
        "name": "slots",
        "dtype": "int32",
        "role": "input",
        "shape": ["n"],
        "draw": {"distribution": "permutation"},
    },
    {
        "name": "offsets",
        "dtype": "int32",
        "role": "input",
        "shape": ["n + 1"],
        "draw": {"distribution": "offsets", "high": "3 * n", "least": 1},
    },
    {
        "name": "keep",
        "dtype": "bool",
        "role": "input",
        "shape": ["n"],
        "draw": {"distribution": "mask", "share": 0.75},
    },
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["3 * n"]},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]
SCATTER_REFERENCE = """y = np.full(dims["n"], np.nan)
sums = np.add.reduceat(inputs["x"], inputs["offsets"][:-1])
y[inputs["slots"]] = np.where(inputs["keep"], sums, -1.0)
return {"y": y}"""


@pytest.mark.parametrize(("slot", "words"), [("slots[i]", ""), ("i", "y is wrong")])
def test_scattered_writes_of_ragged_rows(measure: Measure, slot: str, words: str) -> None:
    """Every slot is written once, which a draw with repetitions would not allow."""
    source = f"#define SLOT {slot}\n{SCATTER}"
    tolerances = {"tolerances": {"y": {"rtol": 1e-3, "atol": 1e-4}}}
    found = measure(job_of(source, SCATTER_ARGUMENTS, SCATTER_REFERENCE, **tolerances))
    assert (words in found.refused) if words else found.refused == ""
    if not words:
        assert len({c.family for c in found.cases}) > 4
        assert any(c.neighbour_of for c in found.cases)
