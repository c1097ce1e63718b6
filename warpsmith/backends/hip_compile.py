"""HIP source for the device of a request. Runs in compile children.

A device of NVIDIA (`sm_90`) gets what CUDA's compilers make of the source behind the headers in
`hip_headers`, which stand in for those of HIP. A device of AMD (`gfx942`) gets what clang makes of it, which
has not run on AMD hardware.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda_compile import compile_checked
from warpsmith.backends.cuda_nvrtc import load_nvrtc
from warpsmith.backends.hip_clang import compile_clang
from warpsmith.domain.device import Backend
from warpsmith.domain.options import refused_options
from warpsmith.domain.outcome import Rejected, Stage
from warpsmith.domain.plan import Compiled
from warpsmith.errors import Unavailable

HEADERS = Path(__file__).resolve().parent / "hip_headers"
RUNTIME = "hip/hip_runtime.h"
"""Every source sees it, as under hipRTC."""
_OF_CLANG = {
    "-ffast-math": "--use_fast_math",
    "-ffp-contract=off": "--fmad=false",
    "-ffp-contract=on": "--fmad=true",
    "-ffp-contract=fast": "--fmad=true",
}
"""CUDA's names of clang's options; others of clang that a job may name say nothing to CUDA's compilers."""


def import_compiler() -> None:
    """Load NVRTC before the child forks, so that no fork pays for it."""
    try:
        load_nvrtc()
    except Unavailable:
        return  # the request says so, to whoever sent it


def compile_hip(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    bad = refused_options(Backend.HIP, request.options)
    if bad:
        option, why = next(iter(bad.items()))
        return _refused(f"option {option!r} {why}")
    if request.architecture.startswith("sm_"):
        return compile_checked(for_nvidia(request))
    if re.fullmatch(r"gfx[0-9a-f]{3,5}", request.architecture):
        return compile_clang(request)
    return _refused(f"HIP is compiled for sm_90 or gfx942 and their like, not for {request.architecture}")


def for_nvidia(request: CompileRequest) -> CompileRequest:
    """The request that CUDA's compilers understand."""
    return replace(
        request,
        backend=Backend.CUDA,
        options=_options(request.options),
        include_dirs=(*request.include_dirs, HEADERS),
        before=RUNTIME,
    )


def _options(options: Sequence[str]) -> tuple[str, ...]:
    own = (_OF_CLANG.get(option, option) for option in options)
    return tuple(option for option in own if not option.startswith(("-f", "-O")))


def _refused(reason: str) -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000])
