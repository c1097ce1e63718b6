"""Tunes a kernel against a function of NumPy, which says what is right, and how close is close enough.

    pip install 'warpsmith[opencl]'
    python examples/python/own_reference.py --seconds 15

Without a reference, candidates are compared with the kernel as it was given, mistakes included. The reference
gets its inputs as float64.
"""

import argparse
import sys
from typing import Any

import numpy as np

import warpsmith

SOURCE = """
__kernel void rms_norm(__global const float* x, __global const float* weight, __global float* y,
                       int rows, int columns) {
  int row = get_global_id(0);
  if (row >= rows) return;
  float squares = 0.0f;
  for (int i = 0; i < columns; ++i) squares += x[row * columns + i] * x[row * columns + i];
  float scale = rsqrt(squares / columns + 1e-6f);
  for (int i = 0; i < columns; ++i) y[row * columns + i] = x[row * columns + i] * scale * weight[i];
}
"""


def rms_norm(x: Any, weight: Any) -> Any:
    """Each row divided by its root mean square. It is sent as its source, and uses nothing but NumPy."""
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight


def main() -> int:
    """Tune, and print what was found."""
    options = argparse.ArgumentParser(description="Tune a kernel against a function of NumPy.")
    options.add_argument("--seconds", type=float, default=15, help="budget of device time")
    given = options.parse_args()
    rows, columns = 200, 333
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns)).astype(np.float32)
    arguments = {
        "x": x,
        "weight": random.uniform(0.5, 1.5, columns).astype(np.float32),
        "y": np.empty_like(x),
    }
    result = warpsmith.tune(
        SOURCE,
        arguments,
        {"rows": rows, "columns": columns},
        grid="ceil_div(rows, 32)",
        block=32,
        reference=rms_norm,
        # An element may differ by 0.00001 of its value and 0.000001.
        tolerances={"y": (1e-5, 1e-6)},
        seconds=given.seconds,
    )
    print(result)
    for compared in result.comparisons:
        print(f"{compared.workload}: {compared.verdict.value}")
    return 0 if result.state.value == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
