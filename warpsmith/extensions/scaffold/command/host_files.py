"""Files that may launch a kernel: its own, and those beside it that name it."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from warpsmith.job_files.kernel_sources import FoundSource
from warpsmith.source.kernels.kernel_definitions import Dialect
from warpsmith.system.source_text import read_source_text

_ENDINGS = (".cu", ".cuh", ".cc", ".cpp", ".cxx", ".c", ".h", ".hpp")
_MOST_FILES = 4
_MOST_BYTES = 300_000


def host_texts(sources: Sequence[Path], found: FoundSource, entry: str | None) -> dict[str, str]:
    """Texts by file name, headers of the kernel's file included.

    Args:
        entry: the kernel's name; without one, a file that has a single kernel.
    """
    own = {path.name: read_source_text(path) for path in sources if path.stat().st_size <= _MOST_BYTES}
    texts = own | dict(zip(found.headers.files, found.headers.files.values(), strict=True))
    name = (entry or "").partition("<")[0].rpartition("::")[2].strip()
    if name:
        quoted = found.dialect is Dialect.OPENCL
        launch = re.compile(
            rf'"{re.escape(name)}"' if quoted else rf"\b{re.escape(name)}\s*(?:<[^;]*?>)?\s*<<<"
        )
        beside = (p for p in sorted(sources[-1].resolve().parent.iterdir()) if _may_launch(p))
        near = ((p.name, read_source_text(p)) for p in beside if p.name not in texts)
        texts |= dict(islice(((n, t) for n, t in near if launch.search(t)), _MOST_FILES))
    return texts


def _may_launch(path: Path) -> bool:
    return path.suffix in _ENDINGS and path.is_file() and path.stat().st_size <= _MOST_BYTES
