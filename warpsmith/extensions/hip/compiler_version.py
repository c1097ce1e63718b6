"""Versions of HIP's compilers, for keys of what they made."""

from contextlib import suppress

from warpsmith.backends.cuda import toolkit
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.clang_program import find_clang
from warpsmith.extensions.hip.rocm_paths import rocm_roots


def compiler_version() -> str:
    """Versions of clang, ROCm and, for devices of NVIDIA, of CUDA's compilers."""
    found = [toolkit.compiler_version()]
    with suppress(Unavailable):
        found += [find_clang().version]
    for root in rocm_roots():
        found += sorted(path.resolve().name for path in root.glob("lib/libhiprtc.so*"))
        with suppress(OSError):
            found.append((root / ".info/version").read_text().strip())
    return "; ".join(found)
