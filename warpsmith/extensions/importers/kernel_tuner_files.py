"""Importer of scripts of Kernel Tuner (`.py`): space, launch, arguments."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.extensions.importers.kernel_tuner import read_script
from warpsmith.extensions.importers.written_source import write_source
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.known import KnownJob
from warpsmith.extensions.scaffold.ports import ONE_TOOL, Opened
from warpsmith.source.kernels.kernel_definitions import KernelDefinition


def takes(path: Path) -> bool:
    """True for a Python file."""
    return path.suffix == ".py"


def opened(files: Sequence[Path], sources: Sequence[Path], target: Path, wanted: InitOptions) -> Opened:
    """Space, launch and arguments of one script, and its sources if none are given."""
    if len(files) > 1:
        raise InvalidInput("source", ONE_TOOL)
    script = read_script(files[0], wanted.entry)
    backend = wanted.backend or script.backend
    made: tuple[Path, ...] = ()
    if not sources and script.source_text:
        chosen = backend or (Backend.CUDA if "__global__" in script.source_text else Backend.OPENCL)
        made = (write_source(target.with_suffix(chosen.language.ending), script.source_text),)

    def known(kernel: KernelDefinition) -> KnownJob:
        return script.known.for_arguments(kernel.arguments)

    entry = wanted.entry or script.known.entry
    return Opened(
        tuple(sources) or made or script.source_files,
        replace(wanted, entry=entry, backend=backend, known=known),
        made,
    )
