"""The jobs that benches run: the examples, and kernels with templates written by hand."""

from pathlib import Path

from warpsmith.domain.job import Job
from warpsmith.jobfile import load_job

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "examples", ROOT / "benchmarks" / "kernels")
"""The latter come with parameters of their own, to which no rule adds any."""
FAMILIES = ("silu_and_mul", "fused_add_rmsnorm", "merge_attn_states", "softmax", "matmul", "stencil")
"""The examples."""


def job_file(name: str, backend: str) -> Path | None:
    """The job of that kernel for that back end; None where there is none."""
    found = (folder / name / f"{backend}.yaml" for folder in FOLDERS)
    return next((path for path in found if path.exists()), None)


def load(name: str, backend: str) -> Job:
    """The job of that name. KeyError: there is none."""
    path = job_file(name, backend)
    if path is None:
        raise KeyError(f"no kernel {name} for {backend} in {', '.join(f.name for f in FOLDERS)}")
    return load_job(path)
