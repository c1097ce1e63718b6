"""The command `init`."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli.output import echo
from warpsmith.cli.shared_options import IncludeDirs
from warpsmith.domain.device import Backend, written_backends
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.files import write_text
from warpsmith.system.shell_words import shell_path

if TYPE_CHECKING:
    from warpsmith.extensions.scaffold.command.fill_ways import FillWays
    from warpsmith.extensions.scaffold.ports import Opened


def _backend(name: str) -> Backend:
    if name not in written_backends():
        raise typer.BadParameter(f"{name!r} is not cuda, opencl, hip or triton")
    return Backend(name)


def init(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Kernel source, header, or host file with kernels as text; several are read in this order. "
            "Also a Python file with Triton kernels, a script of Kernel Tuner (.py), or definition, traces "
            "and solution of FlashInfer-Bench. "
            "A folder lists the kernels below it.",
            exists=True,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Job file to write; its folder is made if need be.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option(help="Name of the kernel; needed if the source has several.")
    ] = None,
    backend: Annotated[
        Backend | None,
        typer.Option(
            parser=_backend,
            metavar="cuda|opencl|hip|triton",
            help="Needed if neither the file's ending nor its text shows it.",
        ),
    ] = None,
    defines: Annotated[
        list[str] | None, typer.Option("-D", help="NAME=VALUE, a macro for the compiler. May be given again.")
    ] = None,
    include_dirs: IncludeDirs = None,
    asks: Annotated[
        bool, typer.Option("--input/--no-input", help="At a terminal, ask for sizes, numbers and the launch.")
    ] = True,
    edits: Annotated[
        bool, typer.Option("--edit", help="Open the job file at its first TODO, with VISUAL or EDITOR.")
    ] = False,
    question: Annotated[
        Path | None,
        typer.Option(help="Write what is still open as a question to this file, for any model, and no job."),
    ] = None,
    answer: Annotated[
        Path | None,
        typer.Option(
            help="Complete the job file with the reply in this file, compile and launch it. If it is wrong, "
            "--question gets the next question."
        ),
    ] = None,
    asks_model: Annotated[
        bool, typer.Option("--model", help="Ask the configured model for what is still open.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list of a folder's kernels as JSON for programs.")
    ] = False,
) -> None:
    """Write a job file skeleton for a kernel; fill in shapes and launch.

    At a terminal it asks for sizes, numbers and the launch; Enter takes the guess, Ctrl-D leaves the rest.
    """
    from warpsmith.extensions.scaffold.command.editor import editor
    from warpsmith.extensions.scaffold.command.fill_ways import FillWays
    from warpsmith.extensions.scaffold.command.init import InitOptions, formed
    from warpsmith.extensions.scaffold.command.kernel_list_view import show_kernels
    from warpsmith.extensions.scaffold.ports import opened, scaffold_for
    from warpsmith.settings import settings

    folders = tuple(include_dirs or ())
    wanted = InitOptions(entry, backend, tuple(defines or ()), folders, settings().permitted_includes())
    if any(path.is_dir() for path in sources):
        _require_alone(sources, out, entry, edits)
        show_kernels(sources[0], replace(wanted, entry=None), settings(), as_json)
        return
    if as_json:
        raise InvalidInput("--json", "lists the kernels of a folder; give a folder")
    _refuse(sources)
    editing = editor() if edits else []
    target = _free(out or sources[-1].with_suffix(".yaml"))
    ways = FillWays(question, answer, asks_model)
    if (other := scaffold_for(sources, backend)) is not None:
        _refuse_for_triton(sources, defines, include_dirs, ways.any)
        text = formed(other.written(sources[0], target, entry), sources, target, wanted)
        write_text(target, text, "--out")
        _end(target, text, (), editing)
        return
    found = opened(sources, target, wanted)
    made = _made(found, target, ways)
    if made is None:
        echo(f"wrote {question}; put the reply into a file and give it with --answer")
        return
    if asks and not edits:
        made = _answered(made, target, [*folders, *(path.resolve().parent for path in found.sources)])
    made = formed(made, found.sources, target, found.wanted)
    write_text(target, made, "--out")
    for path in found.written:
        echo(f"wrote {path}, the kernel's source")
    _end(target, made, folders, editing)


def _require_alone(sources: Sequence[Path], *options: object) -> None:
    if len(sources) > 1 or any(options):
        raise InvalidInput("source", "a folder is listed alone, without --out, --entry and --edit")


def _free(target: Path) -> Path:
    """The job file to write; refused if it exists."""
    if target.exists():
        raise InvalidInput("--out", f"{target} exists; name another file")
    return target


def _answered(text: str, target: Path, folders: Sequence[Path]) -> str:
    """The job file with what is answered at a terminal; unchanged without one."""
    from warpsmith.extensions.scaffold.command.questions import answered

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return text
    return answered(text, target, _ask, _say, folders)


def _made(found: "Opened", target: Path, ways: "FillWays") -> str | None:
    """The job file; None if a question was written instead."""
    from warpsmith.device_checks.compile_check import JobCompiler
    from warpsmith.extensions.scaffold.command.fill import Filler
    from warpsmith.extensions.scaffold.command.fill_ways import completed
    from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
    from warpsmith.settings import settings

    with JobCompiler(settings()) as compiler:
        if ways.any:
            return completed(Filler(found.sources, target, found.wanted, compiler), ways)
        return tried_scaffold(found.sources, target, found.wanted, compiler)


def _end(target: Path, text: str, include_dirs: Sequence[Path], editing: list[str]) -> None:
    """Say what to do with the job file that was written, or open it."""
    from warpsmith.extensions.scaffold.command.editor import edit, first_mark
    from warpsmith.extensions.scaffold.command.next_command import next_command

    left = "fill in what is marked TODO, then: " if first_mark(text, "TODO") else "next: "
    echo(f"wrote {target}; {left}{next_command('tune', target, include_dirs)}")
    if editing:
        edit(editing, target, first_mark(text, "TODO") or 1)


def _refuse_for_triton(
    sources: Sequence[Path], defines: object, include_dirs: object, asks_others: bool
) -> None:
    """Refuse the options that only a C compiler's sources have."""
    if len(sources) != 1:
        raise InvalidInput("source", "give one Python file with Triton kernels")
    for option, given in (("-D", defines), ("-I", include_dirs)):
        if given:
            raise InvalidInput(option, "is for CUDA and OpenCL; a Triton kernel has constexprs")
    if asks_others:
        raise InvalidInput("--model", "and --question, --answer are for CUDA and OpenCL so far")


def _ask(words: str, guess: str) -> str:
    echo(f"{words} [{guess}]: ", err=True, ends_line=False)
    return input().strip() or guess


def _say(words: str) -> None:
    echo(f"  {words}", err=True)


def _refuse(paths: Sequence[Path]) -> None:
    """Refuse what no kernel can be read from, each with its reason."""
    for path in paths:
        if _is_job(path):
            words = f"{path} is a job file already; run: warpsmith validate {shell_path(path)}"
            raise InvalidInput("source", words)


def _is_job(path: Path) -> bool:
    if path.suffix != ".json":
        return path.suffix in (".yaml", ".yml")
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False  # reading it as another tool's says what is wrong
    return isinstance(data, dict) and isinstance(data.get("kernel"), dict) and "workloads" in data
