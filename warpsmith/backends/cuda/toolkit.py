"""Finds the CUDA toolkit of this machine: its headers, and nvcc if there is one."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path


def toolkit_includes() -> tuple[Path, ...]:
    """Folders of the toolkit's headers and of CUB; none if there is no toolkit."""
    folders = [home / "include" for home in _homes()]
    spec = find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folders += [Path(root) / "cu13" / "include", Path(root) / "cuda_runtime" / "include"]
    found = [f for f in folders if (f / "cuda_fp16.h").exists()]
    cccl = [f / "cccl" for f in folders if (f / "cccl").is_dir()]
    return (*found[:1], *cccl[:1])


def find_nvcc() -> Path | None:
    """nvcc of this machine; None if there is none."""
    candidates = [home / "bin" / "nvcc" for home in _homes()]
    candidates += [Path(p) / "nvcc" for p in os.environ.get("PATH", "").split(":") if p]
    return next((c for c in candidates if c.exists()), None)


def compiler_version() -> str:
    """Versions of NVRTC, nvcc and the toolkit's headers that sources meet here."""
    nvcc = find_nvcc()
    told = "" if nvcc is None else _told_by(nvcc.resolve(), nvcc.stat().st_mtime_ns)
    return "; ".join((*_libraries(), told))


def cccl_version() -> str:
    """Version of the toolkit's C++ libraries (CCCL), such as `3.0.1`; empty if it is not known."""
    for folder in toolkit_includes():
        header = folder / "cuda" / "std" / "__cccl" / "version.h"
        found = re.search(r"define CCCL_VERSION (\d+)", header.read_text()) if header.is_file() else None
        if found is not None:
            number = int(found.group(1))
            return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    return ""


@cache
def _libraries() -> tuple[str, ...]:
    # Once for a process: its compile children are forked from one that has loaded NVRTC.
    packages = {f"{d.name} {d.version}" for d in distributions() if d.name.startswith("nvidia-cuda-")}
    files = {path.resolve().name for path in _nvrtc_files()}
    return (*sorted(packages), *sorted(files), cccl_version())


def _nvrtc_files() -> Iterator[Path]:
    folders = [home / "lib64" for home in _homes()]
    folders += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    for folder in (*folders, *Path("/usr").glob("lib*"), *Path("/usr/lib").glob("*-linux-gnu")):
        yield from folder.glob("libnvrtc.so*")


@cache
def _told_by(compiler: Path, _changed_ns: int) -> str:
    done = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return " ".join(done.stdout.split())


def _homes() -> list[Path]:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return [Path(home) for home in homes if home]
