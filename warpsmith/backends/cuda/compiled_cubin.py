"""Results of CUDA compilers, and checks of a cubin against the request: entries, parameters, kernels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.backends.binaries.kernel_symbols import is_mark
from warpsmith.backends.binaries.ptx_names import never_named
from warpsmith.backends.cuda.arguments import parameter_mismatch
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.source_text import code_of
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage, joined_facts

_RESOURCES = re.compile(r"Used (\d++) registers")
_SPILLS = re.compile(r"(?<!\d)(\d++) bytes spill stores, (\d++) bytes spill loads")
_SHARED = re.compile(r"(?<!\d)(\d++) bytes smem")
_STACK = re.compile(r"(?<!\d)(\d++) bytes stack frame")
_PART = re.compile(r"\w+|[^\w\s]")
_ATTRIBUTE = re.compile(r"__\w+__|alignas|[A-Z][A-Z0-9_]*")
"""Words with arguments before a kernel's name that are not its name: `__launch_bounds__(512, 2)`, macros."""
_EXTERN_C = re.compile(r'extern\s+"C"')
_ENDS = re.compile(r"[;{]")
_OF_TOOLKIT = ("_ZN3cub", "_ZN6thrust", "_ZN4cuda")
"""Mangled prefixes of namespaces whose headers declare kernels of their own."""
_PTXAS_ENTRY = re.compile(r"Compiling entry function '([^']+)'")


@dataclass(frozen=True)
class Cubin:
    """A binary of a compiler, with the symbols of its entries."""

    binary: bytes
    entries: tuple[str, ...]
    """Symbols of the entries, in the request's order."""
    log: str
    ptx: str = ""
    """PTX from which the binary was assembled; empty if it is not known."""


@dataclass(frozen=True)
class Refused:
    """Refusal of a source by a compiler."""

    log: str

    def rejection(self) -> Rejected:
        """Outcome with the first error line as its reason, and the end of the log."""
        lines = [s.strip() for s in self.log.splitlines() if "error" in s.lower() or "fatal" in s]
        reason = lines[0] if lines else "the compiler failed"
        return Rejected(stage=Stage.COMPILE, reason=reason[:500], log=self.log[-MAX_LOG_CHARACTERS:])


def checked(made: Cubin, request: CompileRequest) -> Compiled | Rejected:
    """The binary with its facts, if it has the entry, with parameters for the job's arguments, and no kernel
    that the source does not declare."""
    cubin, log = made.binary, made.log
    try:
        contents = read_cubin(cubin)
    except ValueError as exc:
        return Rejected(stage=Stage.COMPILE, reason=str(exc), log=log[-MAX_LOG_CHARACTERS:])
    missing = next((entry for entry in made.entries if entry not in contents.entries), None)
    if missing is not None:
        found = ", ".join(contents.entries) or "none"
        return Rejected(
            stage=Stage.COMPILE, reason=f"no kernel {missing!r} in the binary; found {found}"[:2000]
        )
    # The operator's headers may declare kernels; their text is not inspected.
    extra = (
        [] if request.has_other_headers else undeclared(contents.entries, made.entries, request.whole_text)
    )
    if extra:
        return Rejected(
            stage=Stage.COMPILE,
            reason=f"the binary holds kernels the source does not declare: {extra[0]}"[:2000],
        )
    for asked, entry in zip(request.entries, made.entries, strict=True):
        differs = parameter_mismatch(asked.parameters, contents.parameters.get(entry, ()))
        if differs:
            words = f"{asked.entry}: {differs}" if request.then else differs
            return Rejected(stage=Stage.COMPILE, reason=words[:2000], log=log[-MAX_LOG_CHARACTERS:])
    return Compiled(
        binary=cubin,
        entry=made.entries[0],
        then_entries=made.entries[1:],
        facts=joined_facts([_facts(log, entry) for entry in made.entries]),
        log=log[-MAX_LOG_CHARACTERS:],
        globals=contents.writable_globals,
        unnamed=never_named(made.ptx, contents.writable_globals),
    )


def is_plain_c(request: CompileRequest, entry: str) -> bool:
    """True if an entry is an `extern "C"` function, whose symbol is its name."""
    if not entry.isidentifier():
        return False
    if re.search(r'extern\s+"C"\s*\{', request.source) is not None:
        return True
    called = re.compile(rf"\b{entry}\s*\(")
    for part in _ENDS.split(request.whole_text):
        begin = _EXTERN_C.search(part)
        if begin is not None and called.search(part, begin.end()) is not None:
            return True
    return False


def undeclared(entries: Sequence[str], wanted: Sequence[str], source: str) -> list[str]:
    """Entries that the source does not declare as `__global__` functions; inline PTX can open some."""
    code = code_of(source, characters=False)
    declared = kernel_names(code)
    return [
        e
        for e in entries
        if e not in wanted
        and not is_mark(e)
        and not e.startswith(_OF_TOOLKIT)
        and not any(e == name or f"{len(name)}{name}" in e for name in declared)
    ]


def kernel_names(code: str) -> set[str]:
    """Names before the parameters of `__global__` functions. Each character is looked at once."""
    names: set[str] = set()
    before, passed, depth, is_header = "", "", 0, False
    for found in _PART.finditer(code):
        part = found.group()
        if part == "__global__":
            before, passed, depth, is_header = "", "", 0, True
        elif not is_header:
            continue
        elif part in ";{}":
            # An attribute that nothing follows was the name.
            names.add(passed)
            is_header = False
        elif depth:
            depth += {"(": 1, ")": -1}.get(part, 0)
        elif part == "(" and _ATTRIBUTE.fullmatch(before):
            passed, depth = before, 1
        elif part == "(":
            names.add(before)
            is_header = False
        else:
            before = part if part[0].isalnum() or part[0] == "_" else ""
    return names - {""}


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
