"""`make demo`: tunes a softmax on this machine's GPU, or a product of matrices on its CPU through PoCL.

    python scripts/demo.py [--out DIR]

The job goes over HTTP to a service started for it; DIR gets `report.html` and `result.json`.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from warpsmith.domain.device import Backend  # noqa: E402
from warpsmith.sandbox.device_host import probe_devices  # noqa: E402

JOBS = {
    Backend.CUDA: ROOT / "examples" / "softmax" / "cuda.yaml",
    Backend.OPENCL: ROOT / "scripts" / "demo" / "gemm.yaml",
}


def main() -> int:
    """Exit code of the tuning run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    probe = probe_devices()
    found = {d.backend for d in probe.devices}
    backend = Backend.CUDA if Backend.CUDA in found else Backend.OPENCL
    if backend not in found:
        reasons = "\n".join(f"  {reason}" for reason in probe.unavailable.values())
        print(f"no device to tune on:\n{reasons}", file=sys.stderr)
        return 3
    device = next(d for d in probe.devices if d.backend is backend)
    job = JOBS[backend]
    print(f"tuning {job.relative_to(ROOT)} on {device.name} ({backend.value})", file=sys.stderr)
    started = time.monotonic()
    command = [sys.executable, "-m", "warpsmith", "tune", str(job), "--out", str(options.out)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    print(f"took {time.monotonic() - started:.0f} s", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
