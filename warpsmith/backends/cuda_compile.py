"""CUDA source to a cubin: NVRTC, or nvcc if a source needs host headers. Runs in compile children."""

import os
import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cubin import read_cubin
from warpsmith.backends.kernel_symbols import demangled, is_mark, marked, match_entry
from warpsmith.domain.device import Backend
from warpsmith.domain.options import refused_options
from warpsmith.domain.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage
from warpsmith.domain.plan import Compiled
from warpsmith.domain.source_text import code_of
from warpsmith.errors import Unavailable

_MISSING_HEADER = re.compile(r"(cannot|could not) open source file|No such file|has not been declared in")
_RESOURCES = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes stack frame")
_GLOBAL_NAME = re.compile(r"__global__[^;{}]*?\b(\w+)\s*\(")
_OF_TOOLKIT = ("_ZN3cub", "_ZN6thrust", "_ZN4cuda")
"""Mangled prefixes of namespaces whose headers declare kernels of their own."""
_PTXAS_ENTRY = re.compile(r"Compiling entry function '([^']+)'")


def compile_cuda(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    bad = refused_options(Backend.CUDA, request.options)
    if bad:
        option, why = next(iter(bad.items()))
        return Rejected(stage=Stage.COMPILE, reason=f"option {option!r} {why}"[:2000])
    if request.compiler == "nvcc":
        return _nvcc(request)
    result = _nvrtc(request)
    if request.compiler == "auto" and isinstance(result, Rejected) and _wants_host_headers(result):
        return _nvcc(request)
    return result


def import_compiler() -> None:
    """Load NVRTC before the child forks, so that no fork pays for it."""
    _load_nvrtc()


def _wants_host_headers(result: Rejected) -> bool:
    return _MISSING_HEADER.search(result.log) is not None and _find_nvcc() is not None


def _load_nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as exc:
        raise Unavailable(f"cuda: NVRTC is missing; install the [cuda] extra ({exc})") from exc
    return nvrtc


def _nvrtc(request: CompileRequest) -> Compiled | Rejected:
    nvrtc = _load_nvrtc()
    status, program = nvrtc.nvrtcCreateProgram(request.source.encode(), b"kernel.cu", 0, [], [])
    _must(nvrtc, status)
    # A plain C function keeps its name; anything else is found through its name expression.
    named = _is_plain_c(request) is False
    if named:
        (status,) = nvrtc.nvrtcAddNameExpression(program, request.entry.encode())
        _must(nvrtc, status)
    options = [f"--gpu-architecture={request.architecture}", "--ptxas-options=-v", *request.options]
    if not any("std=" in option for option in options):
        options.append("--std=c++17")
    options += [f"-I{path}" for path in (*request.include_dirs, *_toolkit_includes())]
    encoded = [option.encode() for option in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    log = _nvrtc_log(nvrtc, program)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        return _failure(log)
    entry = request.entry
    if named:
        status, lowered = nvrtc.nvrtcGetLoweredName(program, request.entry.encode())
        _must(nvrtc, status)
        entry = lowered.decode()
    status, size = nvrtc.nvrtcGetCUBINSize(program)
    _must(nvrtc, status)
    cubin = b" " * size
    (status,) = nvrtc.nvrtcGetCUBIN(program, cubin)
    _must(nvrtc, status)
    return _checked(cubin, entry, log, request)


def _nvcc(request: CompileRequest) -> Compiled | Rejected:
    nvcc = _find_nvcc()
    if nvcc is None:
        return Rejected(stage=Stage.COMPILE, reason="this source needs nvcc, and this worker has none")
    plain = _is_plain_c(request)
    source = request.source
    if not plain:
        source = marked(source, request.entry)
    folder = Path.cwd()
    (folder / "kernel.cu").write_text(source)
    command = [str(nvcc), "--cubin", f"-arch={request.architecture}", "-Xptxas", "-v", "-o", "kernel.cubin"]
    command += request.options
    if not any("std=" in option for option in request.options):
        command.append("-std=c++17")
    command += [f"-I{path}" for path in request.include_dirs]
    done = subprocess.run(
        [*command, "kernel.cu"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    log = done.stderr + done.stdout
    if done.returncode != 0:
        return _failure(log)
    cubin = (folder / "kernel.cubin").read_bytes()
    symbols = [] if plain else read_cubin(cubin).entries
    entry = request.entry if plain else match_entry(request.entry, symbols)
    if entry is None:
        has = ", ".join(demangled(s) for s in symbols if not is_mark(s)) or "none"
        return Rejected(
            stage=Stage.COMPILE,
            reason=f"which kernel of the binary {request.entry!r} means is not clear; it has {has}"[:2000],
            log=log[-MAX_LOG_CHARACTERS:],
        )
    return _checked(cubin, entry, log, request)


def _checked(cubin: bytes, entry: str, log: str, request: CompileRequest) -> Compiled | Rejected:
    try:
        contents = read_cubin(cubin)
    except ValueError as exc:
        return Rejected(stage=Stage.COMPILE, reason=str(exc), log=log[-MAX_LOG_CHARACTERS:])
    if entry not in contents.entries:
        found = ", ".join(contents.entries) or "none"
        return Rejected(
            stage=Stage.COMPILE, reason=f"no kernel {entry!r} in the binary; found {found}"[:2000]
        )
    # The operator's headers may declare kernels; their text is not inspected.
    extra = [] if request.has_other_headers else _undeclared(contents.entries, entry, request.whole_text)
    if extra:
        return Rejected(
            stage=Stage.COMPILE,
            reason=f"the binary holds kernels the source does not declare: {extra[0]}"[:2000],
        )
    return Compiled(
        binary=cubin,
        entry=entry,
        facts=_facts(log, entry),
        log=log[-MAX_LOG_CHARACTERS:],
        globals=contents.writable_globals,
    )


def _undeclared(entries: Sequence[str], entry: str, source: str) -> list[str]:
    """Entries that the source does not declare as `__global__` functions; inline PTX can open some."""
    code = code_of(source, characters=False)
    declared = set(_GLOBAL_NAME.findall(code))
    return [
        e
        for e in entries
        if e != entry
        and not is_mark(e)
        and not e.startswith(_OF_TOOLKIT)
        and not any(e == name or f"{len(name)}{name}" in e for name in declared)
    ]


def _facts(log: str, entry: str) -> CompileFacts:
    parts = _PTXAS_ENTRY.split(log)
    text = next((parts[i + 1] for i in range(1, len(parts) - 1, 2) if parts[i] == entry), log)
    registers, spills = _RESOURCES.search(text), _SPILLS.search(text)
    shared, stack = _SHARED.search(text), _STACK.search(text)
    return CompileFacts(
        registers=int(registers[1]) if registers else None,
        spill_bytes=int(spills[1]) + int(spills[2]) if spills else None,
        static_shared_bytes=int(shared[1]) if shared else 0,
        local_bytes=int(stack[1]) if stack else None,
    )


def _is_plain_c(request: CompileRequest) -> bool:
    """True if the entry is an `extern "C"` function, whose symbol is its name."""
    if not request.entry.isidentifier():
        return False
    declared = re.search(rf'extern\s+"C"[^;{{]*\b{request.entry}\s*\(', request.whole_text)
    return declared is not None or re.search(r'extern\s+"C"\s*\{', request.source) is not None


def _toolkit_includes() -> tuple[Path, ...]:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [Path(h) / "include" for h in homes if h]
    spec = find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folders += [Path(root) / "cu13" / "include", Path(root) / "cuda_runtime" / "include"]
    found = [f for f in folders if (f / "cuda_fp16.h").exists()]
    cccl = [f / "cccl" for f in folders if (f / "cccl").is_dir()]
    return (*found[:1], *cccl[:1])


def _find_nvcc() -> Path | None:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    candidates = [Path(h) / "bin" / "nvcc" for h in homes if h]
    candidates += [Path(p) / "nvcc" for p in os.environ.get("PATH", "").split(":") if p]
    return next((c for c in candidates if c.exists()), None)


def _nvrtc_log(nvrtc: Any, program: Any) -> str:
    status, size = nvrtc.nvrtcGetProgramLogSize(program)
    _must(nvrtc, status)
    log = b" " * size
    (status,) = nvrtc.nvrtcGetProgramLog(program, log)
    _must(nvrtc, status)
    text: str = log.decode(errors="replace")
    return text.strip("\0 \n")


def _failure(log: str) -> Rejected:
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    reason = lines[0] if lines else "the compiler failed"
    return Rejected(stage=Stage.COMPILE, reason=reason[:500], log=log[-MAX_LOG_CHARACTERS:])


def _must(nvrtc: Any, status: Any) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status}")
