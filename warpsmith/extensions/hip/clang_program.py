"""Finds the clang that compiles HIP for AMD's devices."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.rocm_paths import rocm_roots

OLDEST, NEWEST = 17, 40
"""Versions of clang looked for by name: the first that knows gfx942, and one that is far ahead."""
KNOWS = "gfx942"
ADVICE = (
    f"no clang that knows {KNOWS}: install clang {OLDEST} or later with lld (on Debian: apt-get install "
    "clang-19 lld-19), or name ROCm's folder in ROCM_PATH"
)
_VERSION = re.compile(r"clang version (\S+)")


@dataclass(frozen=True)
class Clang:
    """A compiler, with its linker beside it."""

    path: Path
    version: str
    architectures: frozenset[str]
    """Names of AMD's processors that it knows, such as `gfx942`."""


@cache
def find_clang() -> Clang:
    """ROCm's clang, else the newest on the path that knows gfx942.

    Raises:
        Unavailable: there is none; the message says what to install.
    """
    lacking = ADVICE
    for path in _candidates():
        found = _asked(path)
        if found is None:
            continue
        if _has_linker(path):
            return found
        lacking = f"{path} has no lld: install lld of the same version (on Debian: apt-get install lld-19)"
    raise Unavailable(lacking)


def _candidates() -> Iterator[Path]:
    for root in rocm_roots():
        for folder in ("llvm/bin", "lib/llvm/bin"):
            if (root / folder / "clang++").is_file():
                yield root / folder / "clang++"
    versions = [f"-{n}" for n in range(NEWEST, OLDEST - 1, -1)]
    for ending in (*versions, ""):
        for name in ("clang++", "clang"):
            found = shutil.which(f"{name}{ending}")
            if found:
                yield Path(found)


def _asked(path: Path) -> Clang | None:
    """The compiler, if it runs and knows gfx942."""
    said = _said(path, "--target=amdgcn-amd-amdhsa", "-nogpulib", "-print-supported-cpus")
    known = frozenset(re.findall(r"^\s+(gfx[0-9a-f]+)$", said, re.M))
    version = _VERSION.search(said)
    return Clang(path, version[1] if version else "", known) if KNOWS in known else None


def _has_linker(path: Path) -> bool:
    return Path(_said(path, "-print-prog-name=lld").strip()).is_absolute()


def _said(path: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            [str(path), *words],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
