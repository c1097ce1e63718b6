"""HIP to a code object for AMD's devices through clang. Runs in compile children, in their folder.

Clang needs no ROCm for this: its own headers name the mathematics, and `headers/amd` has HIP's other
words. What needs ROCm's device library takes it from there, or is refused by name.
"""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.amd_code_object import AmdKernel, read_code_object
from warpsmith.backends.binaries.kernel_symbols import demangled, is_mark, marked, match_entry
from warpsmith.backends.cuda.arguments import parameter_mismatch
from warpsmith.backends.cuda.compiled_cubin import is_plain_c, undeclared
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage, joined_facts
from warpsmith.extensions.hip.clang_program import Clang, find_clang
from warpsmith.extensions.hip.include import HEADERS, RUNTIME
from warpsmith.extensions.hip.language import OFFSET
from warpsmith.extensions.hip.rocm_paths import device_library, rocm_headers

REGISTER_BYTES = 4
_OF_AMD = HEADERS / "amd"
_SOURCE, _OBJECT = "kernel.hip", "kernel.co"
_WITHOUT_ROCM = ("-nogpuinc", "-fdeclspec")
# Names that newer compilers mangle in newer ways are not demangled by older libraries.
OFFSET_OPTION = f"-D{OFFSET}(type,member)=__builtin_offsetof(type,member)"
_COMMAND = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-fclang-abi-compat=17"),
    *("-fno-crash-diagnostics", "-fno-color-diagnostics"),
    OFFSET_OPTION,
)
_MISSING = re.compile(r"undefined (?:hidden |protected )?symbol: (.+)")
_NO_INSTRUCTION = re.compile(r"Cannot select: .*?= (?:strict_)?f(\w+) |no libcall available for f(\w+)")
_OF_LIBRARY = re.compile(r"__oc[mk]l_(native_)?(\w+?)(?:_(f16|f32|f64))?$")
_FROM_HOST = {"printf_begin": "printf", "dm_alloc": "malloc", "dm_dealloc": "free"}
"""Functions of the device library that are called for others."""


def compile_clang(request: CompileRequest) -> Compiled | Rejected:
    """Compile for `request.architecture`, such as `gfx942`.

    Raises:
        Unavailable: there is no clang for it here.
    """
    clang = find_clang()
    if request.architecture not in clang.architectures:
        known = ", ".join(sorted(clang.architectures, key=lambda name: (len(name), name)))
        return _refused(f"clang {clang.version} knows no {request.architecture}; it knows {known}")
    wanted = [e.entry for e in request.entries]
    named = [entry for entry in wanted if not is_plain_c(request, entry)]
    source = marked(request.source, list(dict.fromkeys(named))) if named else request.source
    Path(_SOURCE).write_text(source)
    library = device_library(request.architecture)
    done = subprocess.run(
        _command(clang, request, library),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    log = (done.stderr + done.stdout).replace(f"{_OF_AMD}/", "").replace(f"{HEADERS}/", "")
    if done.returncode != 0:
        return _refused(_reason(log, library is not None), log)

    def symbol_of(entry: str, symbols: Sequence[str]) -> str | None:
        return match_entry(entry, symbols) if entry in named else entry

    return checked_object(request, Path(_OBJECT).read_bytes(), symbol_of, log)


def _command(clang: Clang, request: CompileRequest, library: Path | None) -> list[str]:
    command = [str(clang.path), *_COMMAND, f"--offload-arch={request.architecture}", "-o", _OBJECT]
    command += (
        [f"--rocm-device-lib-path={library}", "-DWARPSMITH_DEVICE_LIBRARY"] if library else ["-nogpulib"]
    )
    if not any(option.startswith("-O") for option in request.options):
        command.append("-O3")
    if not any("std=" in option for option in request.options):
        command.append("-std=c++17")
    command += request.options
    command += [f"-I{path}" for path in request.include_dirs]
    # Without the device library not even `threadIdx` of ROCm's headers has a meaning.
    theirs = rocm_headers() if library else None
    if theirs is None:
        command += [*_WITHOUT_ROCM, f"-I{_OF_AMD}", f"-I{HEADERS}"]
    else:
        command += ["-nogpuinc", "-include", "__clang_hip_runtime_wrapper.h", f"-isystem{theirs}"]
        command.append("-D__HIP_PLATFORM_AMD__=1")
    return [*command, "-include", RUNTIME, _SOURCE]


def checked_object(
    request: CompileRequest, code: bytes, symbol_of: Callable[[str, Sequence[str]], str | None], log: str
) -> Compiled | Rejected:
    """The code object, if it has the entries with parameters for the job's arguments, and no kernel that the
    source does not declare.

    Args:
        symbol_of: the symbol of an entry among those of all kernels; None if that is not clear.
    """
    try:
        contents = read_code_object(code)
    except ValueError as exc:
        return _refused(str(exc), log)
    own = [name for name in contents.kernels if not is_mark(name)]
    entries = []
    for asked in request.entries:
        symbol = symbol_of(asked.entry, tuple(contents.kernels))
        if symbol is None or symbol not in contents.kernels:
            has = ", ".join(map(demangled, own)) or "none"
            return _refused(f"no kernel {asked.entry!r} in the code object, or several; it has {has}", log)
        differs = parameter_mismatch(asked.parameters, contents.kernels[symbol].parameters)
        if differs:
            return _refused(f"{asked.entry}: {differs}" if request.then else differs, log)
        entries.append(symbol)
    extra = [] if request.has_other_headers else undeclared(own, entries, request.whole_text)
    if extra:
        return _refused(f"the code object holds kernels the source does not declare: {extra[0]}")
    return Compiled(
        binary=code,
        entry=entries[0],
        then_entries=tuple(entries[1:]),
        facts=joined_facts([_facts(contents.kernels[entry]) for entry in entries]),
        log=log[-MAX_LOG_CHARACTERS:],
        globals=contents.writable_globals,
    )


def _facts(kernel: AmdKernel) -> CompileFacts:
    """A kernel's resources as facts.

    The compiler counts spilled registers, not the bytes of their stores and loads: each counts 4 bytes once.
    Scalar registers are spilled to lanes of vector registers and count only where those are spilled.
    """
    return CompileFacts(
        registers=kernel.vector_registers,
        spill_bytes=kernel.spilled_vector_registers * REGISTER_BYTES,
        static_shared_bytes=kernel.shared_bytes,
        local_bytes=kernel.private_bytes,
    )


def _reason(log: str, has_library: bool) -> str:
    lacking = "" if has_library else "; ROCm's device library, which has it, is missing here"
    missing = list(dict.fromkeys(_MISSING.findall(log)))
    if missing:
        names = ", ".join(dict.fromkeys(map(_as_called, missing)))
        ours = lacking if any(_OF_LIBRARY.match(name) for name in missing) else ""
        return f"error: no device code for {names}{ours}"
    no_instruction = _NO_INSTRUCTION.search(log)
    if no_instruction:
        name = no_instruction[1] or no_instruction[2]
        return f"error: AMD's devices have no instruction for {name} of these numbers{lacking}"
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    return lines[0] if lines else "the compiler failed"


def _as_called(symbol: str) -> str:
    """The function of a source that calls a function of the device library."""
    found = _OF_LIBRARY.match(symbol)
    if found is None:
        return symbol
    native, name, kind = found.groups()
    if kind is None or name in _FROM_HOST:
        return _FROM_HOST.get(name, name)
    called = f"h{name}" if kind == "f16" else f"{name}f" if kind == "f32" else name
    return f"__{called}" if native else called


def _refused(reason: str, log: str = "") -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000], log=log[-MAX_LOG_CHARACTERS:])
