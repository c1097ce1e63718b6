"""CUDA source to a cubin through NVRTC, which compiles device code only and knows no standard library.

The headers in `headers` make up for that. They are read as follows, one way after another:

- `NVRTC`: only what the source includes.
- `NVRTC_ORDINARY`: first what a source sees under nvcc without including it, such as `int64_t`.
- `NVRTC_HOST_CODE`: host functions of headers count as device functions that nothing calls. Classes and
  functions that only a host has are declared and never defined, so that no kernel that calls one links.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpsmith import extras
from warpsmith.backends.base import PACKAGE, CompileRequest, CompileWay
from warpsmith.backends.cuda.compiled_cubin import Cubin, Refused, is_plain_c
from warpsmith.backends.cuda.toolkit import toolkit_includes
from warpsmith.backends.probes.compile_sites import NAME
from warpsmith.errors import Unavailable

HEADERS = Path(__file__).resolve().parent / "headers"
_OPTIONS = {
    CompileWay.NVRTC: (),
    # Warning 47 is about macros of <climits> that CUDA's own headers define once more.
    CompileWay.NVRTC_ORDINARY: ("--pre-include=warpsmith/ordinary.h", "-diag-suppress=47"),
    CompileWay.NVRTC_HOST_CODE: (
        "--pre-include=warpsmith/with_host_code.h",
        "-diag-suppress=47",
        "--device-as-default-execution-space",
    ),
}
_EXTENDED_LAMBDA = "--expt-extended-lambda"
_OF_NVCC = ("--expt-relaxed-constexpr", _EXTENDED_LAMBDA)
"""Options without a meaning where there is no host code; NVRTC refuses them."""
_ANNOTATED_LAMBDA = re.compile(r"(?<=\])\s*(?:__(?:host|device)__\s*)+(?=[({])")


def load_nvrtc() -> Any:
    """The module of NVRTC.

    Raises:
        Unavailable: the package or the library is missing.
    """
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as exc:
        raise Unavailable(f"cuda: NVRTC is missing; {extras.advice('cuda')} ({exc})") from exc
    return nvrtc


def compile_nvrtc(request: CompileRequest, way: CompileWay) -> Cubin | Refused:
    """Compile in one of the ways of NVRTC."""
    nvrtc = load_nvrtc()
    program, log = _compiled(nvrtc, request, _options(request, way), request.source, NAME)
    if program is None:
        return Refused(log)
    symbols = {}
    wanted = [e.entry for e in request.entries]
    for entry in _named(request):
        status, lowered = nvrtc.nvrtcGetLoweredName(program, entry.encode())
        _must(nvrtc, status)
        symbols[entry] = lowered.decode()
    cubin = _bytes(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    return Cubin(cubin, tuple(symbols.get(e, e) for e in wanted), log, _ptx(nvrtc, program))


def ptx_of(request: CompileRequest, way: CompileWay, source: str, name: str) -> str | None:
    """The PTX of another source in the place of a request's; None if it does not compile.

    Args:
        request: what `compile_nvrtc` has compiled.
        way: in which way.
        source: the other source, with the same kernels.
        name: path of the other source.
    """
    nvrtc = load_nvrtc()
    # The assembler is not needed.
    virtual = replace(request, architecture=request.architecture.replace("sm_", "compute_"))
    program, _ = _compiled(nvrtc, request, _options(virtual, way), source, name)
    return None if program is None else _ptx(nvrtc, program)


def _compiled(
    nvrtc: Any, request: CompileRequest, options: list[str], source: str, name: str
) -> tuple[Any | None, str]:
    """The program, or None if it does not compile, and the log."""
    text = for_nvrtc(source, request.options)
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
    _must(nvrtc, status)
    for entry in _named(request):
        (status,) = nvrtc.nvrtcAddNameExpression(program, entry.encode())
        _must(nvrtc, status)
    encoded = [option.encode() for option in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    log = _log(nvrtc, program)
    return (program if status == nvrtc.nvrtcResult.NVRTC_SUCCESS else None), log


def _named(request: CompileRequest) -> list[str]:
    """Entries that are found through their name expressions; a plain C function keeps its name."""
    return sorted({e.entry for e in request.entries if not is_plain_c(request, e.entry)})


def _ptx(nvrtc: Any, program: Any) -> str:
    return _bytes(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).decode(errors="replace")


def for_nvrtc(source: str, options: Sequence[str]) -> str:
    """The source for NVRTC, which refuses `[=] __device__ (int i) {}`; every character keeps its place."""
    if _EXTENDED_LAMBDA not in options:
        return source
    return _ANNOTATED_LAMBDA.sub(lambda m: re.sub(r"\S", " ", m.group()), source)


def _options(request: CompileRequest, way: CompileWay) -> list[str]:
    options = [f"--gpu-architecture={request.architecture}", "--ptxas-options=-v"]
    options += [option for option in request.options if option not in _OF_NVCC]
    if not any("std=" in option for option in options):
        options.append("--std=c++17")
    # The project's own headers come first, and then ours, one of which stands in for one of the toolkit.
    options += [f"-I{path}" for path in (*request.include_dirs, HEADERS, *toolkit_includes())]
    before = [f"--pre-include={request.before}"] if request.before else []
    return [*options, *_OPTIONS[way], *before]


def _log(nvrtc: Any, program: Any) -> str:
    log = _bytes(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    # The front end's part and the assembler's each end in a zero byte.
    return (
        log.decode(errors="replace")
        .replace("\0", "\n")
        .strip()
        .replace(f"{HEADERS}/", "")
        .replace(f"{PACKAGE}/", "")
    )


def _bytes(nvrtc: Any, program: Any, size_of: Callable[..., Any], read: Callable[..., Any]) -> bytes:
    status, size = size_of(program)
    _must(nvrtc, status)
    data: bytes = b" " * size
    (status,) = read(program, data)
    _must(nvrtc, status)
    return data


def _must(nvrtc: Any, status: Any) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status}")
