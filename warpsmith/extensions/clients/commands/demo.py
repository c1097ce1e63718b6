"""`demo`: tunes an example on this machine, a softmax on a GPU or a product of matrices through OpenCL."""

import time
from pathlib import Path

from warpsmith import applications
from warpsmith.cli.output import echo
from warpsmith.domain.device import Backend
from warpsmith.errors import Unavailable

JOBS = {Backend.CUDA: Path("softmax", "cuda.yaml"), Backend.OPENCL: Path("gemm", "opencl.yaml")}
"""Example by back end, the preferred one first."""


def demo(out: Path) -> int:
    """Tune the example of the best back end of this machine; returns the exit code.

    The job goes over HTTP to a service that is started for it; `out` gets `report.html` and `result.json`.

    Raises:
        Unavailable: there is no device, or no example.
    """
    from warpsmith.extensions.clients.commands.tune import tune
    from warpsmith.sandbox.hosts.device_host import probe_devices

    probe = probe_devices()
    device = next((d for backend in JOBS for d in probe.devices if d.backend is backend), None)
    if device is None:
        raise Unavailable("no device to tune on; " + "; ".join(probe.unavailable.values()))
    job = applications.examples() / JOBS[device.backend]
    echo(f"tuning {'/'.join(job.parts[-3:])} on {device.name} ({device.backend.value})", err=True)
    started = time.monotonic()
    code = tune(job, out)
    echo(f"took {time.monotonic() - started:.0f} s", err=True)
    return code
