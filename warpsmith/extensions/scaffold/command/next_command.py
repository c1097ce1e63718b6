"""The command that a user runs next, as it works in the folder where this one ran."""

from collections.abc import Sequence
from pathlib import Path

from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import JobFile
from warpsmith.job_files.value_files import outside
from warpsmith.system.shell_words import shell_folder, shell_path


def next_command(command: str, target: Path, include_dirs: Sequence[Path] = ()) -> str:
    """A command for a job file, quoted for a shell, with the `-I` that it needs.

    Args:
        command: such as `tune`.
        include_dirs: the folders that this command was given.
    """
    folders = [*include_dirs]
    own = _folder_of_source(target)
    if own is not None and outside(own, target.parent, folders):
        folders.append(own)
    allowed = [f"-I {word}" for word in dict.fromkeys(map(shell_folder, folders))]
    return " ".join(["warpsmith", command, shell_path(target), *allowed])


def _folder_of_source(target: Path) -> Path | None:
    try:
        kernel = JobFile.read(target).data.get("kernel")
    except InvalidInput:
        return None
    name = kernel.get("source_file") if isinstance(kernel, dict) else None
    return (target.parent / name).resolve().parent if isinstance(name, str) else None
