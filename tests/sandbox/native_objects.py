"""Compiles OpenCL with single defences switched off, each time in a process of its own."""

import multiprocessing
import os
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from testbed.deadlines import HANGS_S
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.native_object import NativeObject
from warpsmith.backends.opencl import compile as opencl_compile
from warpsmith.backends.opencl import pocl_watch
from warpsmith.domain.device import Backend
from warpsmith.domain.templates.outcome import Rejected

REFUSED, COMPILED, DIED = "refused", "compiled", "died"


def made_of(source: str, folder: Path, *, words: bool = True, objects: bool = True) -> tuple[str, str]:
    """What becomes of a source, and why.

    Args:
        folder: where PoCL keeps what it makes.
        words: the words of the preprocessed source are looked at.
        objects: what PoCL made is looked at.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_compile, args=(there, source, str(folder), words, objects))
    process.start()
    there.close()
    result = (DIED, "")
    with suppress(EOFError):
        assert here.poll(HANGS_S), "no answer"
        result = here.recv()
    process.join(HANGS_S)
    return result


def objects_in(folder: Path) -> list[bytes]:
    """The shared objects that PoCL left in a folder."""
    return [path.read_bytes() for path in sorted(folder.rglob("*.so"))]


def _compile(to: Connection, source: str, folder: str, words: bool, objects: bool) -> None:
    os.environ["POCL_CACHE_DIR"] = folder
    if not words:
        setattr(opencl_compile, "refused_word", lambda _: "")  # noqa: B010
    if not objects:
        setattr(pocl_watch, "inspect", lambda *_: NativeObject(""))  # noqa: B010

    def refuse(reason: str) -> None:
        to.send((REFUSED, reason))
        os._exit(0)

    pocl_watch.refuse_with(refuse)
    result = opencl_compile.compile_opencl(CompileRequest(Backend.OPENCL, source, "f", (), (), "auto", "", 0))
    to.send((REFUSED, result.reason) if isinstance(result, Rejected) else (COMPILED, ""))
