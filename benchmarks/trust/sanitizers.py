"""Each tool of compute-sanitizer on a kernel that has its fault and on one that has none.

    python -m benchmarks.trust.sanitizers [--out FOLDER]

The kernels double a vector. Writes `trust-sanitizers.json` and `.md`; the exit status is 1 where a fault
was not found by the tool that is for it, or something was found in the healthy kernel.
"""

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.argument import Role
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.kernel import Kernel
from warpsmith.domain.launch_size import LaunchSize
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import Unavailable
from warpsmith.sandbox import ChildOpener, CompilePool, sanitizer_for

N, BLOCK = 1000, 64
HEALTHY = "healthy"
BODIES = {
    HEALTHY: "if (i < n) y[i] = 2.0f * x[i];",
    "memcheck": "if (i < n) y[i] = x[i] + x[i == n - 1 ? n : i];",
    "racecheck": "s[t] = i < n ? x[i] : 0.0f; if (i < n) y[i] = x[i] + 0.0f * s[BLOCK - 1 - t] + x[i];",
    "initcheck": "if (i < n) y[i] = 2.0f * x[i] + (y[i] == 12345.0f);",
    "synccheck": "if (t < 40) __syncthreads(); if (i < n) y[i] = 2.0f * x[i];",
}
"""By the tool that must find something."""


def kernel(body: str) -> ConfiguredKernel:
    """A kernel around `body`, which sees x, y, n, i, t and a shared array s."""
    source = f"""#define BLOCK {BLOCK}
extern "C" __global__ void f(const float* x, float* y, const int n) {{
  volatile __shared__ float s[BLOCK];
  const int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
  if (n < 0) s[t] = 0.0f;
  {body}
}}
"""
    fields = {
        "backend": Backend.CUDA,
        "source": source,
        "entry": "f",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": [f"ceil_div(n, {BLOCK})"], "block": [BLOCK]},
    }
    return ConfiguredKernel(kernel=Kernel.model_validate(fields))


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    out = parser.parse_args().out
    device = first_device(Backend.CUDA)
    sanitizer = sanitizer_for(device, ChildOpener(device))
    if sanitizer is None:
        raise SystemExit("there is no compute-sanitizer here")
    pool = CompilePool(1)
    x, y = (BufferPlan(n, Dtype.FLOAT32, r, (N,), None) for n, r in (("x", Role.INPUT), ("y", Role.OUTPUT)))
    plan = WorkloadPlan("w", (x, y, ScalarPlan("n", Dtype.INT32, N)), 5)
    size = LaunchSize((-(-N // BLOCK), 1, 1), (BLOCK, 1, 1))
    rows: list[dict[str, Any]] = []
    for fault, body in BODIES.items():
        built = pool.submit(kernel(body), device).result()
        if isinstance(built, Rejected):
            raise SystemExit(f"{fault}: {built.reason} {built.log}")
        began = time.monotonic()
        try:
            found = dict(sanitizer.findings(built, plan, size))
        except Unavailable as exc:
            found = {"not run": str(exc)}
        good = not any(found.values()) if fault == HEALTHY else bool(found.get(fault))
        seconds = round(time.monotonic() - began, 1)
        rows.append({"fault": fault, "found": found, "as_expected": good, "seconds": seconds})
        print(rows[-1], flush=True)
    pool.close()
    record = where(device, "python -m benchmarks.trust.sanitizers") | {"kernels": rows}
    (out / "trust-sanitizers.json").write_text(json.dumps(record, indent=1) + "\n")
    lines = [
        f"# Sanitizers on {device.name}",
        "",
        f"{device.driver}. Commit {record['commit']}, {record['when']}. `{record['command']}`",
        "",
        "| kernel with a fault for | found by | as expected | seconds, four tools side by side |",
        "|---|---|---|---|",
    ]
    for row in rows:
        words = "; ".join(f"{tool}: {text[:90]}" for tool, text in row["found"].items() if text) or "none"
        lines.append(f"| {row['fault']} | {words} | {row['as_expected']} | {row['seconds']} |")
    (out / "trust-sanitizers.md").write_text("\n".join(lines) + "\n")
    return 0 if all(row["as_expected"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
