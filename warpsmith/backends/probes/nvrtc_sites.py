"""Has NVRTC compile for another place and date, in a fork, and sees for which files it asks. Linux.

NVRTC takes the date from the C library, and looks for files through it. In the fork it is given other
functions of that name.
"""

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpsmith.backends.probes.loaded_libraries import redirect

_LIBRARIES = "libnvrtc.so"
_POINTER, _NUMBER, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_OPENERS: tuple[tuple[str, int, Any, tuple[Any, ...]], ...] = (
    ("fopen", 0, _POINTER, (_TEXT, _TEXT)),
    ("open", 0, _NUMBER, (_TEXT, _NUMBER, _NUMBER)),
    ("access", 0, _NUMBER, (_TEXT, _NUMBER)),
    ("stat", 0, _NUMBER, (_TEXT, _POINTER)),
    ("__xstat", 1, _NUMBER, (_NUMBER, _TEXT, _POINTER)),
)
"""Name, place of the path among the arguments, type of the result, types of the arguments."""


@dataclass
class AskedFiles:
    """Files that NVRTC has looked for."""

    paths: set[str] = field(default_factory=set)
    is_seen: bool = False
    """False: this build of NVRTC looks for files in a way that is not seen."""
    _kept: list[Any] = field(default_factory=list)

    def watch(self) -> None:
        """Begin to note them; for a process that does nothing else afterwards."""
        process = ctypes.CDLL(None)
        for name, place, result, types in _OPENERS:
            real = getattr(process, name, None)
            if real is None:
                continue
            real.restype, real.argtypes = result, list(types)
            callback = ctypes.CFUNCTYPE(result, *types)(self._noting(real, place))
            self._kept.append(callback)
            found = redirect(_LIBRARIES, name, callback)
            self.is_seen = self.is_seen or bool(found and "stat" in name)

    def _noting(self, real: Callable[..., Any], place: int) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.paths.add(os.fsdecode(arguments[place] or b""))
            return real(*arguments)

        return call

    def outside(self, folders: tuple[Path, ...]) -> bool:
        """True if NVRTC has looked for a file that lies in none of these folders."""
        # The folders above a file are asked for as well, to tell its real path.
        inside = tuple(f"{folder}/" for folder in _ways_to(folders))
        paths = (f"{os.path.normpath(Path.cwd() / path)}/" for path in self.paths if path)
        return any(not p.startswith(inside) and not any(i.startswith(p) for i in inside) for p in paths)

    def missing(self) -> set[str]:
        """Names of files that were found under none of the paths that end with them."""
        found = {Path(path).name for path in self.paths if Path(path).exists()}
        return {Path(path).name for path in self.paths} - found - {""}


def _ways_to(folders: tuple[Path, ...]) -> set[Path]:
    return {
        way for folder in folders for way in (Path(os.path.normpath(Path.cwd() / folder)), folder.resolve())
    }


class OtherClock:
    """The date that NVRTC is given, in the form of `asctime`."""

    def __init__(self, text: str) -> None:
        self._text = ctypes.create_string_buffer(text.encode(), 32)
        self._callback = ctypes.CFUNCTYPE(_POINTER, _POINTER)(lambda _: ctypes.addressof(self._text))

    def set(self) -> bool:
        """Give NVRTC the date; False if it takes none. The object must live as long as the process."""
        return bool(redirect(_LIBRARIES, "ctime", self._callback))


def now() -> str:
    """The date in the form of `asctime`, with zeros before days."""
    return time.strftime("%a %b %d %H:%M:%S %Y")
