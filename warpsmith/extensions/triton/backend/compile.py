"""Compiles a variant of a Triton kernel to a cubin as an engine's launch would. Runs in compile children.

Told to the compiler: types, constants and divisibility of the launch (`Specialisation`), and that a multiply
and an addition may be fused, which later versions of Triton leave to their user.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.kernels.specialisation import Constant, Specialisation
from warpsmith.domain.kernels.triton_function import FP_FUSION, LAUNCH_OPTIONS
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage
from warpsmith.domain.templates.variant_binaries import Variant, join
from warpsmith.extensions.triton.backend.module import kernel_module

MODULE = "user_kernel"
MOST_TRAILING = 2
MOST_CAUSES = 20
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


def import_compiler() -> None:
    """Import Triton before the child forks, so that no fork pays for it."""
    try:
        import triton.compiler.compiler  # noqa: F401
        from triton.backends.nvidia import compiler  # noqa: F401
    except ImportError:
        return  # the request says so, to whoever sent it


def compile_triton(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`: a binary of one variant."""
    if request.specialisation is None:
        return _refused("no workload was named to compile for")
    try:
        import triton  # noqa: F401
    except ImportError:
        return _refused("this compiler has no triton; install warpsmith[triton]")
    try:
        text = kernel_module(request.source, request.entry)
    except ValueError as exc:
        return _refused(str(exc))
    folder = Path.cwd()
    os.environ.update(TRITON_CACHE_DIR=str(folder / "cache"), TRITON_HOME=str(folder))
    try:
        return _compiled(request, request.specialisation, text, folder)
    except _Unfit as exc:
        return _refused(str(exc))
    except MemoryError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as exc:  # noqa: BLE001  whatever a user's code raises
        return _failed(exc)


class _Unfit(Exception):
    """The kernel compiles, but cannot be launched here, or not with these arguments."""


def _compiled(request: CompileRequest, asked: Specialisation, text: str, folder: Path) -> Compiled:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    function = _loaded(text, folder, request.entry)
    if not isinstance(function, JITFunction):
        raise _Unfit(f"{request.entry} is no @triton.jit function")
    names = list(function.arg_names)
    values, options = _constants(function, asked)
    _match(names, asked, values, request.arguments)
    signature = {n: asked.types.get(n, "constexpr") for n in names}
    marks = {(names.index(n),): [["tt.divisibility", 16]] for n in asked.divisible if n in names}
    constants = {(names.index(n),): value for n, value in values.items()}
    source = ASTSource(function, signature, constants, marks)
    major = re.fullmatch(r"sm_(\d+)a?", request.architecture)
    if major is None:
        raise _Unfit(f"Triton compiles for NVIDIA devices here, not for {request.architecture}")
    made = triton.compile(source, target=GPUTarget("cuda", int(major[1]), 32), options=options)
    meta, cubin = made.metadata, bytes(made.asm["cubin"])
    contents = read_cubin(cubin)
    _launchable(meta, contents.entries)
    variant = Variant(
        key=asked.key,
        entry=str(meta.name),
        binary=cubin,
        threads=32 * int(meta.num_warps),
        shared_bytes=int(meta.shared),
        blocks=int(meta.num_ctas),
        passes=tuple(n for n, name in enumerate(request.arguments) if name in asked.types),
        trailing=_trailing(len(contents.parameters.get(str(meta.name), ())), len(asked.types)),
        scratch_bytes=int(getattr(meta, "global_scratch_size", 0) or 0),
    )
    facts = _facts(cubin, folder).model_copy(update={"compiler": f"triton {triton.__version__}"})
    facts = facts.model_copy(update={"static_shared_bytes": variant.shared_bytes})
    return Compiled(join([variant]), request.entry, facts, globals=contents.writable_globals)


def _loaded(text: str, folder: Path, entry: str) -> Any:
    path = folder / "kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return getattr(module, entry, None)


def _constants(function: Any, asked: Specialisation) -> tuple[dict[str, Any], dict[str, Any]]:
    """Constants of the function by name, defaults included; and the options of the launch."""
    names = set(function.arg_names)
    values = {n: _constant(v) for n, v in asked.constants.items() if n in names}
    for parameter in function.params:
        if parameter.name not in values and parameter.name not in asked.types and parameter.has_default:
            values[parameter.name] = parameter.default
    options: dict[str, Any] = {FP_FUSION: True}
    for name, value in asked.constants.items():
        if name in names:
            continue
        if name not in LAUNCH_OPTIONS:
            known = ", ".join(LAUNCH_OPTIONS)
            raise _Unfit(f"{name} is no parameter of the function, and no launch option ({known})")
        if name != "maxnreg" or value:
            options[name] = value
    return values, options


def _constant(value: Constant) -> Any:
    if isinstance(value, dict):
        import triton.language as tl

        found = getattr(tl, value["type"], None)
        if not isinstance(found, tl.dtype):
            raise _Unfit(f"triton.language has no type {value['type']}")
        return found
    return value


def _match(
    names: list[str], asked: Specialisation, values: Mapping[str, Any], given: tuple[str, ...]
) -> None:
    """Refuse arguments that are not the function's."""
    unknown = next((n for n in asked.types if n not in names), None)
    if unknown is not None:
        raise _Unfit(f"the function has no parameter {unknown}; it has {', '.join(names)}")
    missing = next((n for n in names if n not in asked.types and n not in values), None)
    if missing is not None:
        where = "kernel.arguments, kernel.constexprs or parameters"
        raise _Unfit(f"parameter {missing} has no value; list it under {where}")
    order = [n for n in names if n in given]
    if order != [n for n in given if n in names]:
        raise _Unfit(f"kernel.arguments are not in the function's order, which is {', '.join(order)}")


def _launchable(meta: Any, entries: tuple[str, ...]) -> None:
    if getattr(meta, "tensordesc_meta", None):
        raise _Unfit("tensor descriptors made by the host are not passed yet; make them in the kernel")
    if int(getattr(meta, "profile_scratch_size", 0) or 0):
        raise _Unfit("the kernel is instrumented; turn that off")
    if getattr(meta, "launch_cooperative_grid", False) or getattr(meta, "launch_pdl", False):
        raise _Unfit("cooperative and dependent launches are not passed yet")
    if tuple(getattr(meta, "cluster_dims", (1, 1, 1)))[1:] not in ((1, 1), ()):
        raise _Unfit("clusters along x only")
    if entries != (str(meta.name),):
        raise _Unfit(f"the binary holds {', '.join(entries) or 'no kernel'}, not {meta.name} alone")


def _trailing(parameters: int, passed: int) -> int:
    """Number of pointers that the kernel takes behind its arguments."""
    count = parameters - passed
    if not 0 <= count <= MOST_TRAILING:
        raise _Unfit(f"the binary takes {parameters} parameters for {passed} arguments")
    return count


def _facts(cubin: bytes, folder: Path) -> CompileFacts:
    """Registers and local memory, as the binary's tables have them."""
    from triton.backends import nvidia

    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    tool = Path(nvidia.__file__ or "").parent / "bin" / "cuobjdump"
    try:
        ran = subprocess.run(
            [tool, "-res-usage", path], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return CompileFacts()
    found = _RESOURCES.search(ran.stdout)
    if found is None:
        return CompileFacts()
    registers, stack, _, local = map(int, found.groups())
    return CompileFacts(registers=registers, spill_bytes=local, local_bytes=stack + local)


def _failed(exc: BaseException) -> Rejected:
    """An error of the compiler: what its innermost part says, and all parts in the log."""
    chain = [exc]
    while (cause := chain[-1].__cause__) is not None and len(chain) < MOST_CAUSES:
        chain.append(cause)
    texts = [f"{type(e).__name__}: {e}".strip() for e in chain]
    lines = [line.strip() for line in texts[-1].splitlines() if line.strip(" ^")]
    reason = lines[0] if len(lines) < 2 else f"{lines[0]} {lines[-1]}"
    log = "\n".join(reversed(texts))
    return Rejected(stage=Stage.COMPILE, reason=reason[:500], log=log[-MAX_LOG_CHARACTERS:])


def _refused(reason: str) -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000])
