"""The list of `init FOLDER` as a table or as JSON."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.errors import NotFound
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.command.kernel_list import KernelList, best, kernels_below
from warpsmith.settings import Settings
from warpsmith.system.printable import one_line
from warpsmith.system.shell_words import shell_folder, shell_path

_HEADINGS = ("file", "line", "kernel", "language", "lacks")


def show_kernels(folder: Path, wanted: InitOptions, settings: Settings, as_json: bool) -> None:
    """Print the kernels below a folder, then the command that makes a job file of one of them.

    Raises:
        NotFound: there is none.
    """
    on_terminal = sys.stderr.isatty()

    def say(words: str) -> None:
        if on_terminal:
            echo(one_line(words)[:100], err=True)

    with JobCompiler(settings) as compiler:
        found = kernels_below(folder, wanted, compiler, say)
    if as_json:
        echo(json.dumps(_data(found), indent=1))
        return
    for line in _table(found, folder):
        echo(line)
    for path, reason in found.broken:
        echo(f"warning: {one_line(str(path))}: {one_line(reason)}", err=True)
    if found.cut:
        echo(f"warning: {found.cut}", err=True)
    if not found.kernels:
        raise NotFound(f"no kernel below {folder}")
    echo(f"to make a job file of one: {_command(found, wanted)}")


def _table(found: KernelList, folder: Path) -> Iterator[str]:
    rows = [
        (os.path.relpath(k.file, folder), str(k.line), k.kernel, k.language, k.lacks) for k in found.kernels
    ]
    table = [tuple(map(one_line, row)) for row in (_HEADINGS, *rows)]
    widths = [max(len(row[n]) for row in table) for n in range(len(_HEADINGS) - 1)]
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in table if rows else ():
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]])[:wide]


def _command(found: KernelList, wanted: InitOptions) -> str:
    kernel = best(found.kernels)
    assert kernel is not None
    words = ["warpsmith init", shell_path(kernel.file), f"--entry {shlex.quote(kernel.kernel)}"]
    words += [f"-D {shlex.quote(d)}" for d in wanted.defines]
    words += [f"-I {shell_folder(d)}" for d in wanted.include_dirs]
    words += [f"--backend {wanted.backend.value}"] if wanted.backend else []
    target, number = kernel.file.with_suffix(".yaml"), 1
    while target.exists():
        number += 1
        target = kernel.file.with_name(f"{kernel.file.stem}-{number}.yaml")
    words += [f"-o {shell_path(target)}"] if number > 1 else []
    return " ".join(words)


def _data(found: KernelList) -> dict[str, object]:
    kernels = [
        {"file": str(k.file), "line": k.line, "kernel": k.kernel, "language": k.language, "lacks": k.lacks}
        for k in found.kernels
    ]
    broken = [{"file": str(path), "reason": reason} for path, reason in found.broken]
    return {"kernels": kernels, "broken": broken, "cut": found.cut}
