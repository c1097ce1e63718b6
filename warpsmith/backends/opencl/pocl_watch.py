"""Sees what PoCL makes of a source for a CPU, before any of it runs.

PoCL loads the objects that it makes into its own process: once for every block size, when a binary is asked
for or at a launch. What it loads is read first, wherever that happens. The text that its preprocessor left
goes through a file that PoCL removes; it is read before that. Where nothing but that text is wanted, a fork
builds and ends there.
"""

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from warpsmith.backends.binaries.native_object import inspect
from warpsmith.backends.opencl.platforms import POCL, opencl
from warpsmith.backends.probes.loaded_libraries import redirect
from warpsmith.backends.probes.preprocessor_probes import Preprocessed
from warpsmith.backends.probes.throw_away_fork import End, begin
from warpsmith.errors import Unavailable

Refuse = Callable[[str], None]

_LIBRARIES = "pocl"
_PREPROCESSED = ".preproc.cl"
_Load = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_Remove = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """PoCL holds a lock while it builds, and asks for it again where a program is released."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _PoclWatch:
    def __init__(self) -> None:
        process = ctypes.CDLL(None, use_errno=True)
        self._dlopen, self._dlsym, self._remove = process.dlopen, process.dlsym, process.remove
        self._dlopen.restype = self._dlsym.restype = ctypes.c_void_p
        self._dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self._dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._remove.argtypes = [ctypes.c_char_p]
        # PoCL keeps their addresses.
        self._load_callback, self._remove_callback = _Load(self._load), _Remove(self._keep)
        self._installed = False
        self.refuse: Refuse | None = None
        self.variables = False
        self.text: str | None = None
        self.ends_with: Callable[[str], NoReturn] | None = None

    def install(self) -> None:
        if self._installed:
            return
        if not redirect(_LIBRARIES, "dlopen", self._load_callback):
            raise Unavailable("opencl: what this build of PoCL loads cannot be looked into")
        redirect(_LIBRARIES, "remove", self._remove_callback)
        self._installed = True

    def _load(self, path: bytes | None, flags: int) -> Any:
        with _nothing_collected():
            return self._looked_into(path, flags)

    def _looked_into(self, path: bytes | None, flags: int) -> Any:
        problem = "the driver loads itself" if path is None else self._problem(Path(os.fsdecode(path)))
        if problem:
            # PoCL ends its process where it cannot load an object. The handler says why before that.
            if self.refuse is not None:
                self.refuse(f"the compiled kernel is refused: {problem}")
            return None
        return self._dlopen(path, flags)

    def _problem(self, path: Path) -> str:
        try:
            found = inspect(path.read_bytes(), self.variables)
        except OSError as exc:
            return f"it cannot be read: {exc.strerror}"
        taken = next((n for n in found.shared_names if self._dlsym(None, n.encode())), "")
        return found.problem or (taken and f"its function {taken} has the name of one of the process")

    def _keep(self, path: bytes) -> int:
        with _nothing_collected():
            name = os.fsdecode(path)
            if name.endswith(_PREPROCESSED):
                # Of a source that cannot be preprocessed the file is empty or missing.
                with suppress(FileNotFoundError):
                    self.text = Path(name).read_text(errors="replace") or None
            removed = int(self._remove(path))
            if self.ends_with is not None and self.text is not None:
                self.ends_with(self.text)
            return removed


_watch = _PoclWatch()


def watch(device: Any) -> bool:
    """Begin to look, if `device` is a CPU of PoCL; call it when the device is known, and before it is used.

    Returns:
        True if the device's kernels are native code and are looked into.

    Raises:
        Unavailable: this build of PoCL loads what it makes in another way.
    """
    if not device.type & opencl().device_type.CPU or device.platform.name.strip() != POCL:
        return False
    _watch.install()
    return True


def refuse_with(handler: Refuse) -> None:
    """Have `handler` end the process with a reason where an object must not be loaded."""
    _watch.refuse = handler


def allow_variables(allowed: bool) -> None:
    """Say whether the next objects may have variables that outlive launches."""
    _watch.variables = allowed


def take_preprocessed() -> str | None:
    """The text of the last build after its preprocessor; None if none was seen since the last call."""
    text, _watch.text = _watch.text, None
    return text


def preprocessing(build: Callable[[], object]) -> Callable[[], Preprocessed]:
    """Begin a build that ends when its source is preprocessed, in a fork of its own.

    Args:
        build: builds a program; PyOpenCL's RuntimeError if the source is wrong.

    Returns:
        Waits for it, and returns what was made of the source.
    """
    wait = begin(lambda end: _preprocess(build, end))

    def preprocessed() -> Preprocessed:
        found, text = wait()
        return Preprocessed(text) if found else Preprocessed(None, text)

    return preprocessed


def _preprocess(build: Callable[[], object], end: End) -> NoReturn:
    _watch.text, _watch.ends_with = None, lambda text: end(text, True)
    try:
        build()
    except opencl().RuntimeError as exc:
        end(str(exc), False)
    end("", False)
