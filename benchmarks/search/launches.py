"""How the recorded kernels are launched, as their definitions in the collection or our own examples say."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernels.launch import Launch
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.jobfile import load_job

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "examples", ROOT / "benchmarks" / "kernels")
"""The latter come with parameters of their own, to which no rule adds any."""
WARP = 32


def _launch(block: tuple[str, ...], grid: tuple[str, ...]) -> Launch:
    return Launch(block=tuple(map(Expression, block)), grid=tuple(map(Expression, grid)))


def _tiled(width: int, height: int) -> Launch:
    return _launch(
        ("block_size_x", "block_size_y"),
        (
            f"ceil_div({width}, block_size_x * tile_size_x)",
            f"ceil_div({height}, block_size_y * tile_size_y)",
        ),
    )


LAUNCHES = {
    "convolution": _tiled(4096, 4096),
    "convolution_milo": _tiled(4096, 4096),
    "dedispersion_milo": _tiled(25000, 2048),
    "gemm": _launch(("MDIMC", "NDIMC"), ("4096 // MWG", "4096 // NWG")),
    "pnpoly": _launch(("block_size_x",), ("ceil_div(20000000, block_size_x * tile_size)",)),
}
"""By kernel of the collection."""


def job_file(kernel: str) -> Path | None:
    """The job of an example or of a kernel written for the bench; None where there is none."""
    found = (folder / kernel / "cuda.yaml" for folder in FOLDERS)
    return next((path for path in found if path.exists()), None)


def launch_of(kernel: str) -> tuple[Launch, Sequence[Mapping[str, Value]]] | None:
    """How a kernel is launched, and its workloads' dimensions; None for one of which nothing is known.

    An example's is that of the template that the rules make of it.
    """
    if kernel in LAUNCHES:
        return LAUNCHES[kernel], [{}]
    path = job_file(kernel)
    if path is None:
        return None
    job = load_job(path)
    return make_template(job).template.kernel.launch, [w.scope() for w in job.workloads]
