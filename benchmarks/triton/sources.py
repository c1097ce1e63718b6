"""Where the Triton kernels come from. Nothing of theirs is committed here.

    python -m benchmarks.triton.sources --out FOLDER [--mirrors FOLDER]

Triton's tutorials 02, 03 and 05 are taken from projects that keep copies, 06 from Triton itself, and SGLang's
fused MoE from its wheel.
"""

import argparse
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.provenance import record_folder


@dataclass(frozen=True)
class File:
    """One file of a repository."""

    name: str
    """Its name in the folder of sources."""
    repository: str
    commit: str
    path: str


FILES = (
    File(
        "softmax.py",
        "microsoft/triton-shared",
        "1c203ca99e7ea6c364e02c9b0a8a73df948193f9",
        "python/examples/test_softmax.py",
    ),
    File(
        "layer_norm.py",
        "meta-pytorch/tritonbench",
        "db2155c807755c19f5d98c64917ec897f24061f3",
        "tritonbench/operators/layer_norm/tutorial.py",
    ),
    File(
        "matmul.py",
        "meta-pytorch/tritonbench",
        "db2155c807755c19f5d98c64917ec897f24061f3",
        "tritonbench/operators/gemm/triton_matmul.py",
    ),
    File(
        "matmul_configs.py",
        "meta-pytorch/tritonbench",
        "db2155c807755c19f5d98c64917ec897f24061f3",
        "tritonbench/operators/gemm/triton_matmul_configs.py",
    ),
    File(
        "attention.py",
        "triton-lang/triton",
        "dc6ee3ed2cf9b2b436544d6153351f9bc679cc61",
        "python/tutorials/06-fused-attention.py",
    ),
)
MOE = ("moe.py", "sglang==0.5.23", "sglang/kernels/ops/moe/fused_moe_triton_kernels.py")
"""Name, wheel and path in it."""


def main() -> int:
    """Fetch every file that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--mirrors", type=Path, help="git directories OWNER+NAME/repo; none: GitHub")
    asked = parser.parse_args()
    for file in FILES:
        if not (asked.out / file.name).exists():
            (asked.out / file.name).write_text(_of_repository(file, asked.out, asked.mirrors))
    name, wheel, path = MOE
    if not (asked.out / name).exists():
        (asked.out / name).write_text(_of_wheel(wheel, path, asked.out))
    return 0


def _of_repository(file: File, folder: Path, mirrors: Path | None) -> str:
    address = f"https://github.com/{file.repository}"
    if mirrors is not None:
        address = str(mirrors / file.repository.replace("/", "+") / "repo")
    clone = folder / ".clones" / file.repository.replace("/", "+")
    if not clone.exists():
        _run("git", "clone", "--quiet", "--bare", "--filter=blob:none", address, str(clone))
    return _run("git", "-C", str(clone), "show", f"{file.commit}:{file.path}")


def _of_wheel(wheel: str, path: str, folder: Path) -> str:
    kept = folder / ".wheels"
    _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(kept), wheel)
    found = next(kept.glob(f"{wheel.partition('=')[0]}-*.whl"))
    with zipfile.ZipFile(found) as archive:
        return archive.read(path).decode()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
