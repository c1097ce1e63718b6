"""HIP source to a code object for an AMD device, by clang alone. Runs in compile children.

No ROCm is needed: the headers in `hip_headers_amd` stand in for HIP's, and what they leave out of ROCm's
device library is an error that names it. What comes out has not run on AMD hardware; its notes say registers,
local memory and spills.
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.code_object import KernelNote, read_code_object
from warpsmith.backends.elf import Elf, read_elf
from warpsmith.backends.kernel_symbols import demangled, is_mark, marked, match_entry
from warpsmith.domain.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage, joined_facts
from warpsmith.domain.plan import Compiled

HEADERS = Path(__file__).resolve().parent / "hip_headers_amd"
OLDEST = 19
"""Oldest version of clang whose header for HIP the headers here were written for."""
ROCM = Path("/opt/rocm")
_NEWEST = 40
_VERSION = re.compile(r"clang version (\d+)([\d.]*)")
_UNDEFINED = re.compile(r"undefined (?:hidden |protected )?symbol: (\S+)")
_OF_LIBRARY = re.compile(r"__oc(?:ml|kl)_(\w+?)(?:_[fiu]\d+)?")
_OWN_PATHS = re.compile(rf"{re.escape(str(HEADERS.parent))}/")
_OBJECT = 1
_WRITABLE = 1
_FIXED = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-fdeclspec", "-nogpuinc"),
    *("-Wno-unused-command-line-argument", "-Wno-ignored-attributes"),
)


def find_clang() -> Path | None:
    """A clang of this machine that is new enough, ROCm's first; None if there is none."""
    homes = [os.environ.get("ROCM_PATH", ""), str(ROCM)]
    candidates = [Path(home, "llvm", "bin", "clang++") for home in homes if home]
    folders = [Path(p) for p in os.environ.get("PATH", "").split(":") if p]
    for name in (*(f"clang-{n}" for n in range(_NEWEST, OLDEST - 1, -1)), "clang"):
        candidates += [folder / name for folder in folders]
    return next((c for c in candidates if c.exists() and _version(c)[0] >= OLDEST), None)


@cache
def _version(clang: Path) -> tuple[int, str]:
    """The main version, and the whole one as text; 0 if the program does not say."""
    try:
        said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, ""
    found = _VERSION.search(said)
    return (0, "") if found is None else (int(found[1]), f"clang {found[1]}{found[2]}")


def compile_clang(request: CompileRequest) -> Compiled | Rejected:
    """Compile for `request.architecture`, such as `gfx942`; the options have been looked at."""
    clang = find_clang()
    if clang is None:
        words = f"no clang of version {OLDEST} or newer is here to compile for {request.architecture}"
        return Rejected(stage=Stage.COMPILE, reason=words)
    wanted = list(dict.fromkeys(e.entry for e in request.entries))
    Path("kernel.hip").write_text(marked(request.source, wanted))
    command = [str(clang), *_FIXED, f"--offload-arch={request.architecture}", "-O3", *_library()]
    if not any("std=" in option for option in request.options):
        command.append("-std=c++17")
    command += [*request.options, "-include", "__clang_hip_runtime_wrapper.h"]
    command += [f"-I{path}" for path in (*request.include_dirs, HEADERS)]
    command += ["-include", "hip/hip_runtime.h", "kernel.hip", "-o", "kernel.hsaco"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    log = _OWN_PATHS.sub("", (done.stderr + done.stdout).replace(f"{Path.cwd()}/", ""))
    if done.returncode != 0:
        return _refused(_reason(log), log)
    return _checked(Path("kernel.hsaco").read_bytes(), request, log, _version(clang)[1])


def _library() -> list[str]:
    """The options with which ROCm's device library is used, if it is here."""
    for home in (os.environ.get("ROCM_PATH", ""), str(ROCM)):
        bitcode = Path(home or "/", "amdgcn", "bitcode")
        if home and (bitcode / "ocml.bc").exists():
            return [f"--rocm-device-lib-path={bitcode}", "-DWARPSMITH_DEVICE_LIBRARY"]
    return ["-nogpulib"]


def _checked(binary: bytes, request: CompileRequest, log: str, compiler: str) -> Compiled | Rejected:
    try:
        kernels, elf = read_code_object(binary), read_elf(binary)
    except (ValueError, KeyError, TypeError) as exc:
        return _refused(f"the code object cannot be read: {exc}", log)
    by_name = {k.name: k for k in kernels}
    found = []
    for entry in request.entries:
        symbol = entry.entry if entry.entry in by_name else match_entry(entry.entry, tuple(by_name))
        if symbol is None:
            has = ", ".join(demangled(n) for n in by_name if not is_mark(n)) or "none"
            return _refused(
                f"which kernel of the binary {entry.entry!r} means is not clear; it has {has}", log
            )
        found.append(symbol)
    facts = joined_facts([_facts(by_name[symbol]) for symbol in found])
    return Compiled(
        binary=binary,
        entry=found[0],
        then_entries=tuple(found[1:]),
        facts=facts.model_copy(update={"compiler": compiler}),
        log=log[-MAX_LOG_CHARACTERS:],
        globals=_variables(elf),
    )


def _facts(kernel: KernelNote) -> CompileFacts:
    return CompileFacts(
        registers=kernel.vector_registers,
        spill_bytes=4 * kernel.spilled_vector,
        static_shared_bytes=kernel.local_bytes,
        local_bytes=kernel.private_bytes,
    )


def _variables(elf: Elf) -> tuple[str, ...]:
    """Variables that launches can write and that outlive them."""
    found = set()
    for table in elf.sections:
        if table.kind in (2, 11):
            for symbol in elf.symbols(table):
                section = elf.sections[symbol.section] if 0 < symbol.section < len(elf.sections) else None
                writable = section is not None and section.flags & _WRITABLE
                if symbol.kind == _OBJECT and writable and not symbol.name.startswith("__hip_cuid"):
                    found.add(symbol.name)
    return tuple(sorted(found))


def _reason(log: str) -> str:
    lacking = list(dict.fromkeys(_UNDEFINED.findall(log)))
    of_library = [found[1] for name in lacking if (found := _OF_LIBRARY.fullmatch(name))]
    if of_library:
        return f"{', '.join(of_library)} needs ROCm's device library, which is not here"
    if lacking:
        return f"{', '.join(demangled(name) for name in lacking)} is declared and nowhere defined"
    lines = [line.strip() for line in log.splitlines() if "error:" in line]
    return lines[0] if lines else "the compiler failed"


def _refused(reason: str, log: str) -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason[:500], log=log[-MAX_LOG_CHARACTERS:])
