"""Finds the files of ROCm on this machine without loading any."""

import os
from collections.abc import Iterator
from pathlib import Path

ABI = 500
"""Version of code objects that clang makes since clang 18, as the device library's files name it."""
_LIBRARIES = (
    "amdgcn/bitcode",
    "lib/llvm/lib/clang/*/lib/amdgcn/bitcode",
    "llvm/lib/clang/*/lib/amdgcn/bitcode",
)
_OF_DISTRIBUTIONS = ("lib/*/amdgcn/bitcode", "lib/amdgcn/bitcode", "amdgcn/bitcode")


def rocm_roots() -> tuple[Path, ...]:
    """The folder that `ROCM_PATH` names, then `/opt/rocm`, as far as they exist."""
    named = os.environ.get("ROCM_PATH")
    asked = (*([Path(named)] if named else []), Path("/opt/rocm"))
    return tuple(dict.fromkeys(path.resolve() for path in asked if path.is_dir()))


def rocm_headers() -> Path | None:
    """The folder with ROCm's own `hip/hip_runtime.h`."""
    found = (root / "include" for root in rocm_roots())
    return next((path for path in found if (path / "hip/hip_runtime.h").is_file()), None)


def device_library(architecture: str) -> Path | None:
    """The folder of ROCm's device library, if there is one that knows an architecture (`gfx942`)."""
    files = ("ocml.bc", f"oclc_isa_version_{architecture[3:]}.bc", f"oclc_abi_version_{ABI}.bc")
    return next((path for path in _libraries() if all((path / name).is_file() for name in files)), None)


def _libraries() -> Iterator[Path]:
    for root in rocm_roots():
        for pattern in _LIBRARIES:
            yield from sorted(root.glob(pattern))
    for pattern in _OF_DISTRIBUTIONS:
        yield from sorted(Path("/usr").glob(pattern))
