"""Nine OpenCL kernels that others wrote, and the job of each. Their sources are read from git.

`strangers/NAME.yaml` is the job: launch, shapes and a reference of our own. Its fields are those that commit
26755db knows, so that older trees can run it too.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

JOBS = Path(__file__).with_suffix("")
_RAW_STRING = re.compile(r'^R"\(\n(.*)^\)"', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Kernel:
    """A kernel: where its source lies, and what a user does to it before tuning."""

    name: str
    repository: str
    commit: str
    sources: tuple[str, ...]
    """Joined to one file in this order."""
    target: str
    """Name of that file; the job names it."""
    headers: tuple[str, ...] = ()
    """Laid beside it."""


_PARBOIL = ("abduld/Parboil", "a4c63da")
_NVIDIA = ("sschaetz/nvidia-opencl-examples", "4e919bd")
_AMD = ("s1kl3/AMDAPP_samples", "54da6ca")
_CLBLAST = ("CNugteren/CLBlast", "eeff251")


def _alone(name: str, where: tuple[str, str], path: str, *headers: str) -> Kernel:
    return Kernel(name, *where, (path,), Path(path).name, headers)


KERNELS = (
    _alone("sgemm", _PARBOIL, "benchmarks/sgemm/src/opencl_base/kernel.cl"),
    _alone(
        "mri-q",
        _PARBOIL,
        "benchmarks/mri-q/src/opencl_base/kernels.cl",
        "benchmarks/mri-q/src/opencl_base/macros.h",
    ),
    _alone(
        "stencil",
        _PARBOIL,
        "benchmarks/stencil/src/opencl_base/kernel.cl",
        "benchmarks/stencil/src/opencl_base/common.h",
    ),
    _alone("matvec", _NVIDIA, "OpenCL/src/oclMatVecMul/oclMatVecMul.cl"),
    _alone("black-scholes", _NVIDIA, "OpenCL/src/oclBlackScholes/BlackScholes.cl"),
    _alone("floyd-warshall", _AMD, "cl/FloydWarshall/FloydWarshall_Kernels.cl"),
    _alone("convolution", _AMD, "cl/SimpleConvolution/SimpleConvolution_Kernels.cl"),
    _alone("nbody", _AMD, "cl/NBody/NBody_Kernels.cl"),
    Kernel(
        "xhad",
        *_CLBLAST,
        (
            "src/kernels/common.opencl",
            "src/kernels/level1/level1.opencl",
            "src/kernels/level1/xhad.opencl",
        ),
        "kernel.cl",
    ),
)


def lay_out(kernel: Kernel, mirrors: Path, folder: Path, seed: int, seconds: float) -> Path:
    """Write a kernel's source, its headers and its job into `folder`.

    Args:
        mirrors: folder with a git directory for each repository, `OWNER+NAME/repo`.
        seed: of the search's order.
        seconds: the job's budget.

    Returns:
        The job file.

    Raises:
        subprocess.CalledProcessError: git has no such file; its message is on stderr.
    """
    repository = mirrors / kernel.repository.replace("/", "+") / "repo"
    texts = [as_text(_shown(repository, kernel.commit, path)) for path in kernel.sources]
    (folder / kernel.target).write_text("\n".join(texts))
    for path in kernel.headers:
        (folder / Path(path).name).write_text(as_text(_shown(repository, kernel.commit, path)))
    job = yaml.safe_load((JOBS / f"{kernel.name}.yaml").read_text())
    job |= {"seed": seed, "budget": job["budget"] | {"seconds": seconds}}
    written = folder / "job.yaml"
    written.write_text(yaml.safe_dump(job, sort_keys=False))
    return written


def as_text(source: bytes) -> str:
    """A source as a user makes it fit to be read: in UTF-8, and without the ends of a raw string."""
    try:
        text = source.decode()
    except UnicodeDecodeError:
        text = source.decode("latin-1")
    inner = _RAW_STRING.search(text)
    return inner.group(1) if inner else text


def _shown(repository: Path, commit: str, path: str) -> bytes:
    command = ["git", "--git-dir", str(repository), "show", f"{commit}:{path}"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
