"""Ports of `init`: job files for other languages, and files of other tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.registry import Kind, load_all


class Scaffold(Protocol):
    """Writes job files for a language whose sources `init` does not read itself."""

    def takes(self, sources: Sequence[Path], backend: Backend | None) -> bool:
        """True if these sources are in its language, or the user says so."""
        ...

    def written(self, source: Path, target: Path, entry: str | None) -> str:
        """Text of a job file for a kernel of a source.

        Args:
            target: the job file; paths in it are relative to its folder.
            entry: the kernel's name; None: the only one.

        Raises:
            InvalidInput: the source has no such kernel or several.
        """
        ...


@dataclass(frozen=True)
class Opened:
    """Sources and options of `init`, once the files of another tool are read."""

    sources: tuple[Path, ...]
    wanted: InitOptions
    written: tuple[Path, ...] = ()
    """Sources that one of the files held as text, written beside the job file."""


ONE_TOOL = "give one script of Kernel Tuner, or files of FlashInfer-Bench"
"""Message for files of several tools."""


class Importer(Protocol):
    """Reads files of another tool among those that `init` is given."""

    def takes(self, path: Path) -> bool:
        """True for a file of its tool."""
        ...

    def opened(
        self, files: Sequence[Path], sources: Sequence[Path], target: Path, wanted: InitOptions
    ) -> Opened:
        """Sources and options with what the tool's files tell.

        Args:
            files: those of its tool, at least one.
            sources: the other files.
            target: the job file; sources that a file holds as text are written beside it.

        Raises:
            InvalidInput: a file is not of its kind, or would be overwritten.
        """
        ...


def opened(paths: Sequence[Path], target: Path, wanted: InitOptions) -> Opened:
    """Sources and options of `init`, with what files of another tool tell; the files as they are without one.

    Raises:
        InvalidInput: the files are of several tools, or one is not of its kind or would be overwritten.
    """
    importers: tuple[Importer, ...] = load_all(Kind.IMPORTER)
    of_tools = {n: files for n, i in enumerate(importers) if (files := [p for p in paths if i.takes(p)])}
    sources = [p for p in paths if not any(p in files for files in of_tools.values())]
    if not of_tools:
        return Opened(tuple(sources), wanted)
    if len(of_tools) > 1:
        raise InvalidInput("source", ONE_TOOL)
    ((n, files),) = of_tools.items()
    return importers[n].opened(files, sources, target, wanted)


def scaffold_for(sources: Sequence[Path], backend: Backend | None) -> Scaffold | None:
    """The registered scaffold that takes these sources; None if `init` reads them itself."""
    found: tuple[Scaffold, ...] = load_all(Kind.SCAFFOLD)
    return next((scaffold for scaffold in found if scaffold.takes(sources, backend)), None)
