"""Files of other tools among those that `init` is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.extensions.importers.flashinfer_bench import (
    Bench,
    Definition,
    Solution,
    known_job,
    read_json,
    read_workloads,
)
from warpsmith.extensions.importers.kernel_tuner import TunerScript, read_script
from warpsmith.extensions.scaffold.command.init import Wanted
from warpsmith.extensions.scaffold.known import KnownJob
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_ENDINGS = {Backend.CUDA: ".cu", Backend.OPENCL: ".cl", Backend.HIP: ".hip"}
_KEPT = (".cu", ".cuh", ".h", ".hpp", ".hh", ".inl")
"""Endings of a solution's files that a kernel may need."""


@dataclass(frozen=True)
class Opened:
    """Sources and options of `init`, once the files of other tools are read."""

    sources: tuple[Path, ...]
    wanted: Wanted
    written: tuple[Path, ...] = ()
    """Sources that one of the files held as text, written beside the job file."""


def opened(paths: Sequence[Path], target: Path, wanted: Wanted) -> Opened:
    """What to make a job of.

    A script of Kernel Tuner (`.py`) gives space, launch and arguments, a definition of FlashInfer-Bench
    (`.json`) with its traces (`.jsonl`) gives shapes and workloads, and a solution (`.json`) gives sources.

    Raises:
        InvalidInput: a file is not of its kind, or would be overwritten.
    """
    scripts = [p for p in paths if p.suffix == ".py"]
    data = [p for p in paths if p.suffix == ".json"]
    traces = [p for p in paths if p.suffix == ".jsonl"]
    sources = [p for p in paths if p not in (*scripts, *data, *traces)]
    if not (scripts or data or traces):
        return Opened(tuple(sources), wanted)
    if (scripts and (data or traces)) or len(scripts) > 1:
        raise InvalidInput("source", "give one script of Kernel Tuner, or files of FlashInfer-Bench")
    if scripts:
        return _of_script(read_script(scripts[0], wanted.entry), sources, target, wanted)
    return _of_bench([(p, read_json(p)) for p in data], traces, sources, target, wanted)


def _of_script(script: TunerScript, sources: Sequence[Path], target: Path, wanted: Wanted) -> Opened:
    backend = wanted.backend or script.backend
    made: tuple[Path, ...] = ()
    if not sources and script.source_text:
        language = backend or (Backend.CUDA if "__global__" in script.source_text else Backend.OPENCL)
        made = (_write(target.with_suffix(_ENDINGS[language]), script.source_text),)

    def known(kernel: KernelDefinition) -> KnownJob:
        return script.known.for_arguments([a.name for a in kernel.arguments])

    entry = wanted.entry or script.known.entry
    return Opened(
        tuple(sources) or made or script.source_files,
        replace(wanted, entry=entry, backend=backend, known=known),
        made,
    )


def _of_bench(
    data: Sequence[tuple[Path, Definition | Solution]],
    traces: Sequence[Path],
    sources: Sequence[Path],
    target: Path,
    wanted: Wanted,
) -> Opened:
    definitions = [(p, d) for p, d in data if isinstance(d, Definition)]
    solutions = [d for _, d in data if isinstance(d, Solution)]
    if len(definitions) > 1 or len(solutions) > 1:
        raise InvalidInput("source", "give one definition and one solution of FlashInfer-Bench")
    made: tuple[Path, ...] = ()
    if solutions and not sources:
        sources, made = _of_solution(solutions[0], target)
    if not sources:
        raise InvalidInput("source", "a definition has no kernel; give the kernel's source or a solution too")
    known: Callable[[KernelDefinition], KnownJob] = wanted.known
    if definitions:
        path, definition = definitions[0]
        workloads = tuple(w for p in traces for w in read_workloads(p, definition.name))
        bench = Bench(definition, workloads, path.name)

        def known(kernel: KernelDefinition) -> KnownJob:
            return known_job(bench, kernel)
    elif traces:
        raise InvalidInput("source", f"{traces[0].name} needs its definition (.json) beside it")
    return Opened(tuple(sources), replace(wanted, known=known), made)


def _of_solution(solution: Solution, target: Path) -> tuple[list[Path], tuple[Path, ...]]:
    """The solution's main source, and all files that were written."""
    if solution.spec.language not in ("cuda", "cpp"):
        raise InvalidInput(
            "source", f"solution {solution.name} is written in {solution.spec.language}; a job takes CUDA"
        )
    folder = target.with_suffix("")
    kept = [f for f in solution.sources if Path(f.path).suffix in _KEPT]
    unsafe = [f.path for f in kept if Path(f.path).is_absolute() or ".." in Path(f.path).parts]
    if unsafe:
        raise InvalidInput(
            "source", f"solution {solution.name} has a file outside of its folder: {unsafe[0]}"
        )
    made = tuple(_write(folder / f.path, f.content) for f in kept)
    mains = [p for p, f in zip(made, kept, strict=True) if "__global__" in f.content]
    if not mains:
        raise InvalidInput("source", f"solution {solution.name} defines no kernel (__global__)")
    return mains[:1], made


def _write(path: Path, text: str) -> Path:
    if path.exists():
        raise InvalidInput("--out", f"{path} exists, and the kernel's source would be written there")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
