"""Files that options of a command name."""

from pathlib import Path

from warpsmith.errors import InvalidInput


def write_text(path: Path, text: str, option: str) -> None:
    """Write a file; its folder is made if need be.

    Raises:
        InvalidInput: it cannot be written; `option` is the field.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise InvalidInput(option, f"{path} cannot be written: {exc.strerror or exc}") from exc


def read_text(path: Path, option: str) -> str:
    """The text of a file.

    Raises:
        InvalidInput: it cannot be read, or is no text; `option` is the field.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise InvalidInput(option, f"{path} cannot be read: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(option, f"{path} is no UTF-8") from exc
