"""Which projects the kernels come from, and at which commits. Nothing of theirs is committed here."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Project:
    """A repository with OpenCL kernels."""

    name: str
    repository: str
    commit: str
    folder: str
    """Where its kernels are; nothing else is checked out."""
    options: tuple[str, ...] = ()
    """Options that its own host code builds a kernel with."""
    endings: tuple[str, ...] = ("cl",)
    """Endings of the files that are checked out."""
    alone: bool = False
    """True if a job has its kernel without the others of its file, which not every device compiles."""


PROJECTS = (
    Project("polybench", "cavazos-lab/PolyBench-ACC", "70ea4ca9047dc4ec9c3ca79b4c91b3b2cc1510e7", "OpenCL"),
    Project(
        "rodinia",
        "yuhc/gpu-rodinia",
        "9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4",
        "opencl",
        ("-DBLOCK_SIZE=16", "-DDEFAULT_ORDER=256", "-DDEFAULT_ORDER_2=256"),
    ),
    Project(
        "shoc",
        "vetter/shoc",
        "0aea03beba2f09fcb5935cc11737372fe4de9ec0",
        "src/opencl",
        ("-DSINGLE_PRECISION", "-DN_GP=64", "-DLROWS=8", "-DLCOLS=8"),
    ),
    Project("darknet", "sowson/darknet", "d287ee438758977c2f6f27a6418d3428626e7edd", "src"),
    Project(
        "ggml",
        "ggml-org/ggml",
        "d99724f2b141fed9e1a9f402213506c081433465",
        "src/ggml-opencl/kernels",
        ("-cl-mad-enable", "-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-fast-relaxed-math"),
        alone=True,
    ),
)


def fetch(project: Project, target: Path, mirrors: Path | None = None) -> Path:
    """Check the kernels of a project out into `target/NAME`; what is there already is kept.

    Args:
        mirrors: folder with a git directory for each repository, `OWNER+NAME/repo`; None: GitHub.

    Returns:
        The folder with the kernels.

    Raises:
        subprocess.CalledProcessError: git failed; its message is on stderr.
    """
    clone = target / project.name
    if not clone.exists():
        address = f"https://github.com/{project.repository}"
        if mirrors is not None:
            address = str(mirrors / project.repository.replace("/", "+") / "repo")
        _git(target, "clone", "--quiet", "--no-checkout", "--filter=blob:none", address, str(clone))
        # Some repositories are far larger than their kernels, so only these are checked out.
        patterns = [f"/{project.folder}/**/*.{ending}" for ending in project.endings]
        _git(clone, "sparse-checkout", "set", "--no-cone", *patterns)
        _git(clone, "checkout", "--quiet", project.commit)
    return clone / project.folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)
