"""HIP source to a code object for AMD's devices through hipRTC and hip-python. Runs in compile children.

Not run with ROCm, nor on AMD hardware. It has ROCm's own headers and device library in it, which clang finds
only where they are installed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from warpsmith import extras
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda.compiled_cubin import is_plain_c
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.calls import text_of
from warpsmith.extensions.hip.clang import OFFSET_OPTION, checked_object
from warpsmith.extensions.hip.clang_program import find_clang

_LACKING = "hip: hipRTC is missing"


def load_hiprtc() -> Any:
    """The module `hip.hiprtc`, with its library.

    Raises:
        Unavailable: hip-python or the library is missing.
    """
    try:
        from hip import hiprtc
    except ImportError as exc:
        raise Unavailable(f"{_LACKING}; {extras.advice('hip')} ({exc})") from exc
    try:
        hiprtc.hiprtcVersion()
    except RuntimeError as exc:
        # hip-python loads a library at its first call.
        raise Unavailable(f"{_LACKING}; it is a part of ROCm ({exc})") from exc
    return hiprtc


def stands_in_for_clang() -> bool:
    """True where hipRTC is and no clang that compiles for AMD."""
    for load in (find_clang, load_hiprtc):
        try:
            load()
        except Unavailable:
            continue
        return load is load_hiprtc
    return False


def compile_hiprtc(request: CompileRequest) -> Compiled | Rejected:
    """Compile for `request.architecture`, such as `gfx942`.

    Raises:
        Unavailable: hipRTC is not here.
    """
    rtc = load_hiprtc()
    wanted = [e.entry for e in request.entries]
    # A plain C function keeps its name; anything else is found through its name expression.
    named = sorted({entry for entry in wanted if not is_plain_c(request, entry)})
    with _program(rtc, request.source) as program:
        for entry in named:
            _must(rtc.hiprtcAddNameExpression(program, entry.encode()))
        options = [option.encode() for option in _options(request)]
        (status,) = rtc.hiprtcCompileProgram(program, len(options), options)
        log = _log(rtc, program)
        if int(status) != 0:
            lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
            return _refused(lines[0] if lines else str(getattr(status, "name", status)), log)
        symbols = {
            entry: text_of(_must(rtc.hiprtcGetLoweredName(program, entry.encode()))[0]) for entry in named
        }
        (size,) = _must(rtc.hiprtcGetCodeSize(program))
        code = bytearray(size)
        _must(rtc.hiprtcGetCode(program, code))
    return checked_object(request, bytes(code), lambda entry, _: symbols.get(entry, entry), log)


@contextmanager
def _program(rtc: Any, source: str) -> Iterator[Any]:
    (program,) = _must(rtc.hiprtcCreateProgram(source.encode(), b"kernel.hip", 0, [], []))
    try:
        yield program
    finally:
        # It takes the address of the handle.
        rtc.hiprtcDestroyProgram(program.createRef())


def _options(request: CompileRequest) -> Iterator[str]:
    yield f"--offload-arch={request.architecture}"
    yield OFFSET_OPTION
    if not any(option.startswith("-O") for option in request.options):
        yield "-O3"
    if not any("std=" in option for option in request.options):
        yield "-std=c++17"
    yield from request.options
    yield from (f"-I{path}" for path in request.include_dirs)


def _log(rtc: Any, program: Any) -> str:
    (size,) = _must(rtc.hiprtcGetProgramLogSize(program))
    # Its size may or may not count the zero byte that ends it.
    log = bytearray(size + 1)
    if size:
        _must(rtc.hiprtcGetProgramLog(program, log))
    return bytes(log).split(b"\0")[0].decode(errors="replace")


def _must(result: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *found = result
    if int(status) != 0:
        raise RuntimeError(f"hipRTC: {getattr(status, 'name', status)}")
    return tuple(found)


def _refused(reason: str, log: str) -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000], log=log[-MAX_LOG_CHARACTERS:])
