"""CUDA source to a cubin: NVRTC in several ways, nvcc for what it cannot read. Runs in compile children."""

import re
from collections.abc import Sequence
from dataclasses import replace

from warpsmith.backends.base import CompileRequest, CompileWay, RefusedEveryWay
from warpsmith.backends.cuda.compiled_cubin import Cubin, Refused, checked
from warpsmith.backends.cuda.environment_probes import environment_probes, may_depend
from warpsmith.backends.cuda.nvcc import compile_nvcc
from warpsmith.backends.cuda.nvrtc import compile_nvrtc, load_nvrtc
from warpsmith.backends.cuda.toolkit import find_nvcc
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.options import refused_options
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage

_ASSEMBLER = re.compile(r"^[ \t]*+ptxas (?:error|fatal)(?!.*Unresolved extern)", re.M)
"""An error behind the front end, such as too much shared memory, which every way would end with."""
# What has begun is not tried again from a later place of the line.
_HOST_ENTITY = re.compile(r"^(?>(.+?)\(\d++\): error: )(?=.*not allowed in JIT mode)(.*)\n(.*)", re.M)
"""The file, the message and the line of the source."""
_OF_HOSTS = re.compile(
    r"not allowed in JIT mode|cannot open source file|Unresolved extern|namespace \"std\" has no"
)
"""Errors that NVRTC has and nvcc would not have."""


def compile_cuda(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    bad = refused_options(Backend.CUDA, request.options)
    if bad:
        option, why = next(iter(bad.items()))
        return Rejected(stage=Stage.COMPILE, reason=f"option {option!r} {why}"[:2000])
    return compile_checked(request)


def compile_checked(request: CompileRequest) -> Compiled | Rejected:
    """Compile a request whose options have been looked at."""
    if request.compiler == "nvcc":
        return _finished(compile_nvcc(request), request, CompileWay.NVCC)
    return _by_nvrtc(request)


def import_compiler() -> None:
    """Load NVRTC before the child forks, so that no fork pays for it."""
    load_nvrtc()


def _by_nvrtc(request: CompileRequest) -> Compiled | Rejected:
    """The ways in turn, until one compiles the source or the next would not help."""
    refused: Refused | None = None
    for way in _ways(request):
        if refused is not None and not _may_help(way, refused):
            continue
        if way is CompileWay.NVCC:
            return _with_nvcc(request, refused)
        result = compile_nvrtc(request, way)
        if isinstance(result, Cubin):
            return _finished(result, request, way)
        refused = result
        if _ASSEMBLER.search(refused.log):
            break
    assert refused is not None
    return _pointing(refused, request)


def _ways(request: CompileRequest) -> Sequence[CompileWay]:
    ways = list(CompileWay)
    if request.compiler != "auto" or find_nvcc() is None:
        ways.remove(CompileWay.NVCC)
    begin = next((k for k, way in enumerate(ways) if way.value == request.begin_with), 0)
    return ways[begin:] if request.may_fall_back else ways[begin : begin + 1]


def _may_help(way: CompileWay, refused: Refused) -> bool:
    """True to try a way after another that refused the source.

    Host functions of the kernel's own text are left to nvcc, which refuses a kernel that calls one, except
    those that a compiler can evaluate.
    """
    if way is CompileWay.NVCC:
        return True
    found = _HOST_ENTITY.findall(refused.log)
    if way is CompileWay.NVRTC_ORDINARY:
        return not found
    own = [(message, line) for file, message, line in found if file == "kernel.cu"]
    return bool(found) and all("constexpr" in line or "lambda" in message for message, line in own)


def _with_nvcc(request: CompileRequest, refused: Refused | None) -> Compiled | Rejected:
    result = _finished(compile_nvcc(request), request, CompileWay.NVCC)
    if refused is None or not isinstance(result, Rejected):
        return result
    log = f"{result.log}\nNVRTC: {refused.rejection().reason}"
    return RefusedEveryWay(stage=result.stage, reason=result.reason, log=log[-MAX_LOG_CHARACTERS:])


def _finished(made: Cubin | Rejected, request: CompileRequest, way: CompileWay) -> Compiled | Rejected:
    result = checked(made, request) if isinstance(made, Cubin) else made
    if not isinstance(made, Cubin) or not isinstance(result, Compiled):
        return result
    if not request.tells_words:
        return replace(result, way=way.value, may_tell=may_depend(request))
    return replace(result, way=way.value, telling=environment_probes(request, way, made.ptx))


def _pointing(refused: Refused, request: CompileRequest) -> Rejected:
    """The rejection, with the way out if nvcc may compile what NVRTC does not."""
    rejected = refused.rejection()
    if not _OF_HOSTS.search(refused.log):
        return rejected
    if request.compiler == "nvrtc":
        out = "NVRTC compiles device code only; `compiler: auto` or `compiler: nvcc` takes nvcc"
    elif find_nvcc() is None:
        out = (
            "NVRTC compiles device code only, and this worker has no nvcc (`compiler: nvcc`) to fall back to"
        )
    else:
        out = "nvcc has not helped other configurations of this source"
    return rejected.model_copy(update={"reason": f"{rejected.reason} ({out})"})
