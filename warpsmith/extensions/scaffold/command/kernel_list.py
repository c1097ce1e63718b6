"""The kernels below a folder, and what each lacks for a job file that is valid and compiles."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, job_of_text
from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
from warpsmith.job_checks.all_findings import unfinished_lines
from warpsmith.job_files.kernel_sources import HEADER_ENDINGS, SOURCE_ENDINGS, find_source
from warpsmith.source.kernels.kernel_definitions import find_kernels

_HOST_ENDINGS = (".c", ".cc", ".cpp", ".cxx", ".mm")
_ENDINGS = {*SOURCE_ENDINGS, *HEADER_ENDINGS, *_HOST_ENDINGS} - {".py"}
_MARKER = re.compile(rb"__global__|\b(?:__)?kernel\b")
_NEEDED = re.compile(r"add -D(\w+)=|name: (\w+), values: \[16\]\}\s+# TODO: what it is")
MAX_FILES = 2000
"""Limit on the files of one list that are opened."""
MAX_KERNELS = 100
"""Limit on the kernels of one list."""
MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True)
class ListedKernel:
    """A kernel and what a job file of it lacks."""

    file: Path
    line: int
    """From 1; of its name."""
    kernel: str
    language: str
    lacks: str
    """`ready`, or in a few words what is missing."""


@dataclass(frozen=True)
class KernelList:
    """All that was found below a folder."""

    kernels: tuple[ListedKernel, ...]
    broken: tuple[tuple[Path, str], ...]
    """Files that cannot be read, each with the reason."""
    cut: str
    """Limit that ended the search, in words; empty if none did."""


def kernels_below(
    folder: Path, wanted: InitOptions, compiler: JobCompiler, say: Callable[[str], None]
) -> KernelList:
    """List the kernels of every source, header and host file below a folder.

    Args:
        wanted: options for all of them; its entry is not used.
        say: told what is being looked at.
    """
    found: list[ListedKernel] = []
    broken: list[tuple[Path, str]] = []
    for count, path in enumerate(_files(folder)):
        if count == MAX_FILES:
            return KernelList(tuple(found), tuple(broken), f"only the first {MAX_FILES} files were read")
        try:
            for kernel in _kernels(path, wanted):
                if len(found) == MAX_KERNELS:
                    words = f"only the first {MAX_KERNELS} kernels are listed; give a folder further down"
                    return KernelList(tuple(found), tuple(broken), words)
                say(f"{len(found) + 1}: {path}: {kernel.kernel}")
                found.append(replace(kernel, lacks=_lacks(kernel, wanted, compiler)))
        except (InvalidInput, OSError, RecursionError, ValueError) as exc:
            broken.append((path, str(exc).split("\n", 1)[0]))
    return KernelList(tuple(found), tuple(broken), "")


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(d for d in folders if not d.startswith("."))
        yield from (Path(place, n) for n in sorted(names) if Path(n).suffix in _ENDINGS)


def _kernels(path: Path, wanted: InitOptions) -> Iterator[ListedKernel]:
    if not path.is_file():
        return
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidInput("", f"has more than {MAX_FILE_BYTES >> 20} MiB")
    data = path.read_bytes()
    if not _MARKER.search(data):
        return
    try:
        source = find_source([path], path.with_suffix(".yaml"), wanted.backend, wanted.include_dirs)
    except InvalidInput as exc:
        if exc.field == "backend":
            return  # a host file that only names such words
        raise
    rows = data.decode(errors="replace").split("\n")
    is_text = source.source is not None and "#include" not in source.source[:9]
    if path.suffix in _HOST_ENDINGS and not is_text:
        return
    seen: set[str] = set()
    for k in find_kernels(source.text, source.dialect):
        if k.qualified_name in seen:
            continue
        seen.add(k.qualified_name)
        named = (n for n, row in enumerate(rows, 1) if re.search(rf"\b{re.escape(k.name)}\s*\(", row))
        line = next(named, 1) if is_text else k.line
        yield ListedKernel(path, line, k.qualified_name, source.dialect.value, "")


def _lacks(kernel: ListedKernel, wanted: InitOptions, compiler: JobCompiler) -> str:
    target = kernel.file.with_suffix(".yaml")
    try:
        text = tried_scaffold([kernel.file], target, replace(wanted, entry=kernel.kernel), compiler)
    except (InvalidInput, RecursionError, ValueError) as exc:
        return f"no job file: {_short(str(exc))}"
    marks = sum(1 for _ in unfinished_lines(text))
    left = f"TODO {marks}" if marks else "ready"
    try:
        job = job_of_text(text, [kernel.file], target, wanted)
    except InvalidInput as exc:
        return f"{left}, of them: {_short(f'{exc.field}: {exc.message}')}"
    problem = compiler.problem(job)
    needed = [m.group(1) or m.group(2) for m in _NEEDED.finditer(f"{text}\n{problem or ''}")]
    if needed:
        return "needs " + " ".join(f"-D {name}" for name in dict.fromkeys(needed))
    return _short(problem) if problem else left if problem == "" else f"{left}, not compiled here"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:97]}..."


def best(kernels: Sequence[ListedKernel]) -> ListedKernel | None:
    """The kernel that lacks least; None without one."""
    return min(kernels, key=_effort, default=None)


def _effort(kernel: ListedKernel) -> tuple[int, int]:
    marks = re.match(r"TODO (\d+)", kernel.lacks)
    if kernel.lacks.startswith("ready"):
        return 0, 0
    return (1, int(marks.group(1))) if marks and "of them" not in kernel.lacks else (2, 0)
