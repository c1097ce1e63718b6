"""CUDA source to a cubin through nvcc, in the working folder."""

import subprocess
from pathlib import Path

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.backends.binaries.kernel_symbols import demangled, is_mark, marked, match_entry
from warpsmith.backends.cuda.compiled_cubin import Cubin, Refused, is_plain_c
from warpsmith.backends.cuda.toolkit import find_nvcc
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage


def compile_nvcc(request: CompileRequest) -> Cubin | Rejected:
    """Compile with nvcc."""
    nvcc = find_nvcc()
    if nvcc is None:
        return Rejected(stage=Stage.COMPILE, reason="this source needs nvcc, and this worker has none")
    wanted = [e.entry for e in request.entries]
    named = _named(request)
    source = with_marks(request)
    folder = Path.cwd()
    (folder / "kernel.cu").write_text(source)
    outputs = ["--cubin", f"-arch={request.architecture}", "-o", "kernel.cubin", "--keep"]
    done = _run(nvcc, request, [*outputs, f"--keep-dir={folder}", "-Xptxas", "-v", "kernel.cu"])
    log = done.stderr + done.stdout
    if done.returncode != 0:
        return Refused(log).rejection()
    cubin = (folder / "kernel.cubin").read_bytes()
    symbols = read_cubin(cubin).entries if named else ()
    entries = []
    for wish in wanted:
        entry = match_entry(wish, symbols) if wish in named else wish
        if entry is None:
            has = ", ".join(demangled(s) for s in symbols if not is_mark(s)) or "none"
            return Rejected(
                stage=Stage.COMPILE,
                reason=f"which kernel of the binary {wish!r} means is not clear; it has {has}"[:2000],
                log=log[-MAX_LOG_CHARACTERS:],
            )
        entries.append(entry)
    ptx = folder / "kernel.ptx"
    return Cubin(cubin, tuple(entries), log, ptx.read_text(errors="replace") if ptx.exists() else "")


def ptx_by_nvcc(request: CompileRequest, file: str) -> str | None:
    """The PTX of a file in the place of a request's source; None if it does not compile."""
    nvcc = find_nvcc()
    made = Path(f"{Path(file).name}.ptx")
    virtual = request.architecture.replace("sm_", "compute_")
    if nvcc is None or _run(nvcc, request, ["--ptx", f"-arch={virtual}", "-o", str(made), file]).returncode:
        return None
    return made.read_text(errors="replace")


def with_marks(request: CompileRequest) -> str:
    """The source as nvcc gets it: with a mark for each entry that is found by its name expression."""
    named = _named(request)
    return marked(request.source, list(dict.fromkeys(named))) if named else request.source


def _named(request: CompileRequest) -> list[str]:
    return [e.entry for e in request.entries if not is_plain_c(request, e.entry)]


def _run(nvcc: Path, request: CompileRequest, what: list[str]) -> subprocess.CompletedProcess[str]:
    command = [str(nvcc), "-x", "cu", *request.options]
    if not any("std=" in option for option in request.options):
        command.append("-std=c++17")
    command += [f"-I{path}" for path in request.include_dirs]
    command += ["-include", request.before] if request.before else []
    return subprocess.run(
        [*command, *what], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
