"""CUDA source to a cubin through nvcc, in the working folder."""

import subprocess
from pathlib import Path

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cubin import read_cubin
from warpsmith.backends.cuda_cubin import Cubin, Refused, is_plain_c
from warpsmith.backends.cuda_toolkit import find_nvcc
from warpsmith.backends.kernel_symbols import demangled, is_mark, marked, match_entry
from warpsmith.domain.outcome import MAX_LOG_CHARACTERS, Rejected, Stage


def compile_nvcc(request: CompileRequest) -> Cubin | Rejected:
    """Compile with nvcc."""
    nvcc = find_nvcc()
    if nvcc is None:
        return Rejected(stage=Stage.COMPILE, reason="this source needs nvcc, and this worker has none")
    wanted = [e.entry for e in request.entries]
    named = [entry for entry in wanted if not is_plain_c(request, entry)]
    source = marked(request.source, list(dict.fromkeys(named))) if named else request.source
    folder = Path.cwd()
    (folder / "kernel.cu").write_text(source)
    command = [str(nvcc), "--cubin", f"-arch={request.architecture}", "-Xptxas", "-v", "-o", "kernel.cubin"]
    command += ["--keep", f"--keep-dir={folder}"]
    command += request.options
    if not any("std=" in option for option in request.options):
        command.append("-std=c++17")
    command += [f"-I{path}" for path in request.include_dirs]
    command += ["-include", request.before] if request.before else []
    done = subprocess.run(
        [*command, "kernel.cu"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
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
