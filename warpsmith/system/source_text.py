"""Text of source files, in whichever encoding they are kept."""

import codecs
from pathlib import Path

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_source_text(path: Path) -> str:
    """Text of a source file; see `source_text`.

    Raises:
        OSError: the file cannot be read.
    """
    return source_text(path.read_bytes())


def source_text(data: bytes) -> str:
    """Text of a source file's bytes, with LF as the end of each line.

    A byte order mark tells UTF-8 and UTF-16 and is left out. Bytes without one are UTF-8, or else Latin-1.
    """
    text = _decoded(data)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Old comments have various encodings; every byte becomes one character.
        return data.decode("latin-1")
