"""`init`."""

import os
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput

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
