"""References of production jobs on a device beside NumPy: what is computed there, how alike, and how quickly.

    python -m benchmarks.production.device_references --jobs-dir DIR --out FILE [--only NAMES]

DIR holds job files, for instance those of `benchmarks.production.jobs`. Each job's largest workload is
computed twice by both, since the library of the device compiles at first what the function calls. A
difference is relative to the root mean square of the output.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.production.jobs import is_wanted
from benchmarks.provenance import head
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import Job, NumpyReference
from warpsmith.domain.plan import WorkloadPlan, plan_workload
from warpsmith.errors import InvalidInput
from warpsmith.jobfile import load_job
from warpsmith.sandbox import ReferenceRunner, device_references, probe_devices
from warpsmith.sandbox.kept_children import KeptChildren
from warpsmith.verify.compare import root_mean_square
from warpsmith.verify.run_report import Array

KEEP_S = 60.0
SEED = 20261127


def compared(job: Job, device: DeviceInfo, host: ReferenceRunner, there: ReferenceRunner) -> dict[str, Any]:
    """Seconds of both, and how far their outputs are apart; why not, if the device cannot compute it."""
    reference = job.reference
    assert isinstance(reference, NumpyReference)
    scope = device.scope() | job.space.defaults
    plans = [(plan_workload(job.kernel, w, scope, SEED), w.dimensions) for w in job.workloads]
    plan, dims = max(plans, key=lambda p: sum(b.elements for b in p[0].buffers))
    found: dict[str, Any] = {"job": job.name, "workload": plan.workload}
    outputs: dict[str, Mapping[str, Array] | InvalidInput] = {}
    for name, runner in (("host", host), ("device", there)):
        for key in (f"{name}_first_s", f"{name}_s"):
            began = time.monotonic()
            (outputs[name],) = runner.numpy_many(reference.source, reference.function, [(plan, dims)])
            found[key] = round(time.monotonic() - began, 3)
    left, right = outputs["host"], outputs["device"]
    if isinstance(left, InvalidInput) or isinstance(right, InvalidInput):
        return found | {"why_not": str(right if isinstance(right, InvalidInput) else left)[:300]}
    return found | {"apart": {name: apart(plan, name, left[name], right[name]) for name in left}}


def apart(plan: WorkloadPlan, name: str, left: Array, right: Array) -> float:
    """Largest difference of two outputs, relative to their size; infinite if NaN or infinity differ."""
    if not next(b for b in plan.mutated if b.name == name).dtype.is_float:
        return float(np.count_nonzero(left != right))
    finite = np.isfinite(left)
    if not np.array_equal(finite, np.isfinite(right)):
        return float("inf")
    a, b = left[finite].astype(np.float64), right[finite].astype(np.float64)
    return float(np.abs(a - b).max(initial=0.0)) / (root_mean_square(left) or 1.0)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs-dir", type=Path, required=True, help="folder of job files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="names or patterns (fi_*), separated by commas")
    options = parser.parse_args()
    jobs = [load_job(p) for p in sorted(options.jobs_dir.glob("*.json")) if is_wanted(p.stem, options.only)]
    device = next((d for d in probe_devices().devices if d.backend.value == "cuda"), None)
    there = None if device is None else device_references(device, KeptChildren(KEEP_S))
    if device is None or there is None:
        print("no CUDA device with CuPy", file=sys.stderr)
        return 2
    host = ReferenceRunner(kept=KeptChildren(KEEP_S))
    rows = []
    for job in jobs:
        if isinstance(job.reference, NumpyReference):
            rows.append(compared(job, device, host, there))
            print(json.dumps(rows[-1]), flush=True)
    command = "python -m benchmarks.production.device_references " + " ".join(sys.argv[1:])
    options.out.write_text(json.dumps(head(device, command) | {"rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
