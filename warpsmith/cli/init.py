"""`init`: writes a job file for a kernel that exists only as source."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith.cli.init_sources import FoundSource, find_source
from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.rewrite.reader.kernel_definitions import find_kernels
from warpsmith.rewrite.skeleton.job_file import Given, job_skeleton

_MAX_SHOWN = 8


@dataclass(frozen=True)
class Wanted:
    """The user's options for a kernel, besides its files."""

    entry: str | None = None
    backend: Backend | None = None
    defines: tuple[str, ...] = ()
    """Macros as `NAME` or `NAME=VALUE`."""
    include_dirs: tuple[Path, ...] = ()


def skeleton(sources: Sequence[Path], target: Path, wanted: Wanted) -> str:
    """A job file for a kernel of these files.

    Raises:
        InvalidInput: the language is unclear, or the sources have no such kernel.
    """
    defines = _defines(wanted.defines)
    found = find_source(sources, target, wanted.backend, wanted.include_dirs)
    if not find_kernels(found.text, found.dialect, defines):
        raise InvalidInput("source", f"{found.shown}: no kernel definition found{_elsewhere(found, defines)}")
    return job_skeleton(
        found.text,
        found.shown,
        found.dialect,
        wanted.entry,
        Given(found.lines, defines, tuple(found.headers.files.values())),
    )


def _defines(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InvalidInput("-D", f"{text!r} is not of the form NAME or NAME=VALUE")
        found[name] = value if "=" in text else "1"
    return found


def _elsewhere(found: FoundSource, defines: Mapping[str, str]) -> str:
    """A hint to the header that has kernels, if the file itself has none."""
    places = []
    for path, text in found.headers.files.items():
        names = [k.name for k in find_kernels(text, found.dialect, defines)]
        if names:
            places.append(
                f"{path} ({', '.join(names[:_MAX_SHOWN])}{', ...' if len(names) > _MAX_SHOWN else ''})"
            )
    if not places:
        return ""
    return f"; it includes headers that define some: {'; '.join(places[:_MAX_SHOWN])}. Give that file to init"
