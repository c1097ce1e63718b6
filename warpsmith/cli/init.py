"""`init` and `validate`."""

import os
from collections.abc import Iterator
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.jobfile import load_job

_BACKENDS = {
    ".cu": Backend.CUDA,
    ".cuh": Backend.CUDA,
    ".cl": Backend.OPENCL,
    ".hip": Backend.HIP,
}


def skeleton(source: Path, target: Path, entry: str | None) -> str:
    """A job file for a kernel source.

    Raises:
        InvalidInput: an ending that names no back end, or no such kernel in the source.
    """
    from warpsmith.rewrite.skeleton import job_skeleton
    from warpsmith.rewrite.syntax import Dialect

    backend = _BACKENDS.get(source.suffix)
    if backend is None:
        raise InvalidInput("source", f"{source.name}: the ending must be one of {', '.join(_BACKENDS)}")
    shown = os.path.relpath(source.resolve(), target.resolve().parent)
    return job_skeleton(source.read_text(errors="replace"), shown, Dialect.from_backend(backend), entry)


def describe(path: Path) -> Iterator[str]:
    """What a job file holds, and how many configurations its own tunables have."""
    from warpsmith.search.feasible import enumerate_space

    job = load_job(path)
    yield f"{job.name}: {job.kernel.backend.value} kernel {job.kernel.entry}, valid"
    for workload in job.workloads:
        yield f"  workload {workload.key} (weight {workload.weight:g})"
    if any(n.startswith("device.") for c in job.constraints for n in c.expression.names):
        yield "  configurations: counted on the device, since constraints name device limits"
        return
    feasible = enumerate_space(job.space, [w.scope() for w in job.workloads])
    exact = "" if feasible.exact else "at least "
    yield f"  configurations of its own tunables: {exact}{feasible.count}"
