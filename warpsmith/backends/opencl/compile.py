"""OpenCL C to a driver's binary. Runs in compile children."""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.opencl.native_words import refused_word
from warpsmith.backends.opencl.platforms import POCL, devices, opencl
from warpsmith.backends.opencl.pocl_cpu_name import cpu_name
from warpsmith.backends.opencl.pocl_watch import allow_variables, preprocessing, take_preprocessed, watch
from warpsmith.backends.probes.preprocessor_probes import (
    FILE_PROBES,
    Preprocessed,
    ProbeGuard,
    effective_probes,
    guard,
    header_in,
    source_in,
)
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.options import refused_options
from warpsmith.domain.source_text import code_of
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage, joined_facts
from warpsmith.domain.templates.template import ExpectedLaunch
from warpsmith.errors import Unavailable

MOST_FINISHED = 4
"""Kernels in a program for which PoCL makes a work-group function each; it makes them for all."""
_ASM = re.compile(r"\b(?:__asm__|__asm|asm)\b")
_OUTLIVES = re.compile(r"program scope variable|cannot be declared static|too many errors")
PROGRAM_VARIABLES = "a program-scope variable"
_BUILD_ON = re.compile(r"^(?>.*?Build on <)[^>]*>:\s*", re.DOTALL)
_SPLICE = re.compile(r"(\\|\?\?/)[ \t\f\v]*\r?\n")


POCL_CACHE = "pocl"
"""Folder of PoCL's intermediate files, in the working folder of the process that compiles."""
_WARM_KERNEL = "__kernel void warm(__global float* x) { x[get_global_id(0)] = 1.0f; }"
_contexts: list[Any] = []
"""Contexts that stay open: with its last context PoCL gives up the loaded compiler."""


def start_compiler() -> None:
    """Import PyOpenCL, and load PoCL's compiler if forks of this process may use it.

    A first build takes PoCL 0.6 s of a core, most of it for LLVM and its library of functions; the first
    build of a fork of a process that has built takes 0.2 s. Other drivers do not survive a fork.
    """
    os.environ["POCL_CACHE_DIR"] = f"/proc/self/cwd/{POCL_CACHE}"
    cl = opencl()
    cpu_name()
    if not _only_pocl():
        return
    Path(POCL_CACHE).mkdir(exist_ok=True)
    with suppress(Unavailable, cl.Error):
        device = devices()[0]
        watch(device)
        context = cl.Context([device])
        # Its binary is not asked for: PoCL would keep the launch for which it finished the first one.
        cl.Program(context, _WARM_KERNEL).build(cache_dir=False)
        _contexts.append(context)


def _only_pocl() -> bool:
    """True if PoCL is the only platform. A fork of its own asks, because asking starts every driver."""
    cl = opencl()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if all(p.name.strip() == POCL for p in cl.get_platforms()) else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def compile_opencl(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    cl = opencl()
    bad = refused_options(Backend.OPENCL, request.options)
    if bad:
        option, why = next(iter(bad.items()))
        return Rejected(stage=Stage.COMPILE, reason=f"option {option!r} {why}"[:2000])
    device = devices()[request.device_index]
    context = cl.Context([device])
    includes = [f"-I{path}" for path in request.include_dirs]
    try:
        built = _built(request, device, context, [*request.options, *includes])
    except cl.RuntimeError as exc:
        return _build_failure(str(exc))
    if isinstance(built, Rejected):
        return built
    program, telling = built
    names = program.get_info(cl.program_info.KERNEL_NAMES).split(";")
    wanted = [e.entry for e in request.entries]
    missing = next((entry for entry in wanted if entry not in names), None)
    if missing is not None:
        return Rejected(
            stage=Stage.COMPILE, reason=f"no kernel {missing!r} in the source; found {', '.join(names)}"
        )
    variables = _program_variables(request, context, includes)
    allow_variables(bool(variables))
    facts = joined_facts([_facts(cl.Kernel(program, entry), device) for entry in wanted])
    _finish_for(request.expected_launch if len(names) <= MOST_FINISHED else None)
    binary = program.get_info(cl.program_info.BINARIES)[0]
    log = program.get_build_info(device, cl.program_build_info.LOG) or ""
    return Compiled(
        binary=bytes(binary),
        entry=request.entry,
        then_entries=tuple(wanted[1:]),
        facts=facts,
        log=log[-MAX_LOG_CHARACTERS:],
        globals=variables,
        telling=telling,
    )


def _built(
    request: CompileRequest, device: Any, context: Any, options: list[str]
) -> tuple[Any, tuple[str, ...]] | Rejected:
    """The program, none of which has run, and its environment probes. For a CPU, its words are looked at.

    Raises:
        RuntimeError: PyOpenCL's, if the source does not compile.
    """
    cl = opencl()

    def build(source: str) -> Any:
        return cl.Program(context, source).build(options, cache_dir=False)

    def begin(by: ProbeGuard, source: str = request.source) -> Callable[[], Preprocessed]:
        return preprocessing(lambda: build(by.before(source)))

    if not watch(device):
        if device.type & cl.device_type.CPU and _names_asm(request):
            return _refused("inline assembly is not allowed in OpenCL kernels for CPUs")
        return build(request.source), ()
    by = guard()
    wait = begin(by)
    program, failure = None, None
    try:
        program = build(request.source)
    except cl.RuntimeError as exc:
        failure = exc
    plain, second, text = take_preprocessed(), wait(), None
    # Not even whether the source compiles may say which files there are.
    refused = _refused_probe(by.in_log(second.log))
    if refused is not None:
        return refused
    if plain is not None:
        # Behind conditions that the guard has broken, the header is not seen: an empty source has it too.
        header = header_in(second.text or begin(by, "")().text or "")
        text = None if header is None else source_in(plain, header)
        # The driver may refuse what a refused word makes, and its message says nothing of the word.
        reason = "the preprocessed source was not seen" if text is None else refused_word(text)
        if reason:
            return _refused(reason)
    if failure is not None:
        raise failure
    if text is None:
        return _refused("the preprocessed source was not seen")
    telling = effective_probes(text, by, second, lambda other: begin(other)())
    return _refused_probe(telling) or (program, telling)


def _refused_probe(words: Iterable[str]) -> Rejected | None:
    word = next((word for word in words if word in FILE_PROBES), None)
    if word is None:
        return None
    return _refused(f"{word} is not allowed in OpenCL kernels for CPUs: it says which files the machine has")


def _refused(reason: str) -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason)


def _facts(kernel: Any, device: Any) -> CompileFacts:
    ask = opencl().kernel_work_group_info
    return CompileFacts(
        static_shared_bytes=kernel.get_work_group_info(ask.LOCAL_MEM_SIZE, device),
        local_bytes=kernel.get_work_group_info(ask.PRIVATE_MEM_SIZE, device),
    )


def _finish_for(launch: ExpectedLaunch | None) -> None:
    """Have PoCL put the work-group function of a launch into the binary; other drivers ignore the variable.

    The value is the name of the function's folder in PoCL's cache, of which PoCL 3 takes one for a block
    size (the documentation of its environment variables).
    """
    os.environ.pop("POCL_BINARY_SPECIALIZE_WG", None)
    if launch is not None:
        grid = "-smallgrid" if launch.is_small else ""
        os.environ["POCL_BINARY_SPECIALIZE_WG"] = f"{'-'.join(map(str, launch.block))}-goffs0{grid}"


def _program_variables(request: CompileRequest, context: Any, options: list[str]) -> tuple[str, ...]:
    """True if the source has variables that outlive a launch, which OpenCL C 2.0 allows and 1.2 refuses.

    No driver reports this for a binary. The source is therefore built once more as 1.2, and the refusal is
    looked for.
    """
    if not any(re.match(r"-cl-std=CL[23]", option) for option in request.options):
        return ()
    cl = opencl()
    older = [o for o in request.options if not o.startswith("-cl-std=")]
    try:
        cl.Program(context, request.source).build([*older, "-cl-std=CL1.2", *options], cache_dir=False)
    except cl.RuntimeError as exc:
        if _OUTLIVES.search(str(exc)):
            return (PROGRAM_VARIABLES,)
    return ()


def _names_asm(request: CompileRequest) -> bool:
    code = code_of(_SPLICE.sub("", request.whole_text))
    return any(_ASM.search(text) for text in (code, *request.options))


def _build_failure(text: str) -> Rejected:
    # PyOpenCL puts the device before the compiler's message and the options after it.
    log = _BUILD_ON.sub("", text).split("\n(options:")[0].strip()
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    reason = lines[0] if lines else "the build failed"
    return Rejected(stage=Stage.COMPILE, reason=reason[:500], log=log[-MAX_LOG_CHARACTERS:])
