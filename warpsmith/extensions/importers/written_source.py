"""Sources that a file of another tool holds as text."""

from pathlib import Path

from warpsmith.errors import InvalidInput


def write_source(path: Path, text: str) -> Path:
    """Write a source beside the job file.

    Raises:
        InvalidInput: the file exists.
    """
    if path.exists():
        raise InvalidInput("--out", f"{path} exists, and the kernel's source would be written there")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
