"""Importer of files of FlashInfer-Bench: definition and solution (`.json`), traces (`.jsonl`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from warpsmith.errors import InvalidInput
from warpsmith.extensions.importers.flashinfer_bench import (
    Bench,
    OperatorDefinition,
    Solution,
    known_job,
    read_json,
    read_workloads,
)
from warpsmith.extensions.importers.written_source import write_source
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.known import KnownJob
from warpsmith.extensions.scaffold.ports import Opened
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_KEPT = (".cu", ".cuh", ".h", ".hpp", ".hh", ".inl")
"""Endings of a solution's files that a kernel may need."""


def takes(path: Path) -> bool:
    """True for a JSON file, of one object or of one a line."""
    return path.suffix in (".json", ".jsonl")


def opened(files: Sequence[Path], sources: Sequence[Path], target: Path, wanted: InitOptions) -> Opened:
    """Shapes and workloads of a definition and its traces, and the source of a solution if none is given."""
    data = [(p, read_json(p)) for p in files if p.suffix == ".json"]
    traces = [p for p in files if p.suffix == ".jsonl"]
    definitions = [(p, d) for p, d in data if isinstance(d, OperatorDefinition)]
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
    made = tuple(write_source(folder / f.path, f.content) for f in kept)
    mains = [p for p, f in zip(made, kept, strict=True) if "__global__" in f.content]
    if not mains:
        raise InvalidInput("source", f"solution {solution.name} defines no kernel (__global__)")
    return mains[:1], made
