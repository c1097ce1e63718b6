"""HIP source for the device of a request. Runs in compile children.

A device of NVIDIA (`sm_90`) gets what CUDA's compilers make of the source behind the headers in
`headers`, which stand in for those of HIP. For one of AMD (`gfx942`), clang makes a code object.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda.compile import compile_checked
from warpsmith.backends.cuda.nvrtc import load_nvrtc
from warpsmith.domain.device import Backend, is_nvidia
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.options import refused_options
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.clang import compile_clang
from warpsmith.extensions.hip.clang_program import find_clang
from warpsmith.extensions.hip.include import HEADERS, RUNTIME
from warpsmith.extensions.hip.rtc import compile_hiprtc, stands_in_for_clang

_OF_AMD = re.compile(r"gfx[0-9a-f]+")
_OF_CLANG = {
    "-ffast-math": "--use_fast_math",
    "-ffp-contract=off": "--fmad=false",
    "-ffp-contract=on": "--fmad=true",
    "-ffp-contract=fast": "--fmad=true",
}
"""CUDA's names of clang's options; others of clang that a job may name say nothing to CUDA's compilers."""


def import_compiler() -> None:
    """Load NVRTC and look for clang before the child forks, so that no fork pays for it."""
    for get_ready in (load_nvrtc, find_clang):
        with suppress(Unavailable):  # the request says so, to whoever sent it
            get_ready()


def compile_hip(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    bad = refused_options(Backend.HIP, request.options)
    if bad:
        option, why = next(iter(bad.items()))
        return _refused(f"option {option!r} {why}")
    if is_nvidia(request.architecture):
        return compile_checked(for_nvidia(request))
    if _OF_AMD.fullmatch(request.architecture):
        return compile_hiprtc(request) if stands_in_for_clang() else compile_clang(request)
    words = (
        f"{request.architecture!r} is no architecture for HIP; use one of AMD (gfx942) or of NVIDIA (sm_90)"
    )
    return _refused(words)


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
