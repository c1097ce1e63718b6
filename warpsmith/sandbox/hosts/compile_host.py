"""Compiling from the worker's side: several compile children, each with one request at a time."""

import dataclasses
import hashlib
import queue
import re
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.backends.opencl.compile import POCL_CACHE
from warpsmith.child_environment import child_environment, preloads
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.by_value_plan import parameters_of
from warpsmith.domain.jobs.layout_checks import layout_checks
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.kernels.headers import SENT
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES, Kernel
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, CompileFacts, Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied
from warpsmith.processes.cores import usable_cores
from warpsmith.processes.stop_children import mark, require_wanted
from warpsmith.sandbox.hosts.compile_deadlines import CompileDeadlines
from warpsmith.sandbox.hosts.compile_ways import LearnedWays
from warpsmith.sandbox.transport.frames import Received
from warpsmith.sandbox.transport.process import ChildProcess, note_confinement

MAX_REPLY_BYTES = 256 << 20
SOURCE_LIMIT_BYTES = 2 * MAX_SOURCE_BYTES
"""Limit on a source with its macros and an inlined header, which may exceed the limit for users."""


class CompilePool:
    """Implements `tuning.ports.CompilerPort`.

    Args:
        workers: compile children at once; 0 takes one per core.
        timeout_s: deadline of one compilation, after which the child's process group is killed; shorter if
            other configurations of the template were quick, see `CompileDeadlines`.
        include_dirs: folders that jobs may name, by name.
        memory_bytes: limit on the address space of one compilation.
    """

    def __init__(
        self,
        workers: int = 0,
        timeout_s: float = 60,
        include_dirs: Mapping[str, Path] | None = None,
        memory_bytes: int = 12 << 30,
    ) -> None:
        count = workers or usable_cores()
        self._count = count
        self._timeout_s = timeout_s
        self._deadlines = CompileDeadlines(timeout_s)
        self._ways = LearnedWays()
        self._memory_bytes = memory_bytes
        self._include_dirs = dict(include_dirs or {})
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="compile")
        self._idle: queue.LifoQueue[tuple[Backend, ChildProcess]] = queue.LifoQueue()

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """Start compiling. The future never raises for a bad kernel; it raises `LeaseLost` for recalled
        work."""
        return self._executor.submit(self._compile, kernel, device, mark())

    def warm(self, backend: Backend, children: int | None = None) -> None:
        """Start children now, by default all, so that the first compilations need not wait for them."""
        for _ in range(self._count if children is None else min(children, self._count)):
            self._executor.submit(self._start, backend)

    def _start(self, backend: Backend) -> None:
        self._idle.put((backend, self._open(backend)))

    def close(self) -> None:
        """Wait for running compilations and end the children."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get()[1].kill()

    def _compile(self, kernel: ConfiguredKernel, device: DeviceInfo, asked: int) -> Compiled | Rejected:
        require_wanted(asked)
        source = (kernel.source + layout_checks(kernel.kernel)).encode()
        refused = self._refused(kernel.kernel, len(source))
        if refused is not None:
            return refused
        template = _template(kernel)
        begin_with, may_fall_back = self._ways.begin(template)
        header = {
            **_header(kernel, device),
            "permitted_dirs": [str(self._include_dirs[name].resolve()) for name in kernel.kernel.includes],
            "begin_with": begin_with,
            "may_fall_back": may_fall_back,
        }
        child = self._take(kernel.kernel.backend)
        answer = self._exchange(child, kernel, header, source, template)
        if isinstance(answer, Rejected):
            return answer
        reply, blobs = answer
        try:
            result = _parse(reply, blobs, child.private)
            if kernel.specialisation is not None and isinstance(result, Compiled):
                result = kernel.kernel.backend.language.compile_reply(result, kernel)
        except (ValidationError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as exc:
            child.kill()
            return _rejected("the compile child sent something that is not a reply", type(exc).__name__)
        if kernel.kernel.backend.language.runs_source:
            child.kill()  # whatever runs or was written there is the user's
        else:
            self._idle.put((kernel.kernel.backend, child))
        if isinstance(result, Compiled):
            self._ways.compiled(template, begin_with, result.way)
        elif reply.get("every_way"):
            self._ways.refused(template)
        return result

    def _refused(self, kernel: Kernel, source_bytes: int) -> Rejected | None:
        """Rejection of a request that no child is asked; None if a child may compile it."""
        if source_bytes > SOURCE_LIMIT_BYTES:
            return _rejected(f"the source has {source_bytes} bytes; at most {SOURCE_LIMIT_BYTES}")
        unknown = [name for name in kernel.includes if name not in self._include_dirs]
        if unknown:
            known = ", ".join(sorted(self._include_dirs)) or "none"
            return _rejected(f"include folder {unknown[0]!r} is not permitted here; permitted: {known}")
        return None

    def _exchange(
        self,
        child: ChildProcess,
        kernel: ConfiguredKernel,
        header: Mapping[str, Any],
        source: bytes,
        template: str,
    ) -> tuple[dict[str, Any], list[Received]] | Rejected:
        """Reply of a compile child within the template's deadline; Rejected if the compiler ended or hung."""
        limit_s = self._timeout_s if kernel.tells_words else self._deadlines.limit_s(template)
        began = time.monotonic()
        try:
            headers = [text.encode() for text in kernel.kernel.files.values()]
            child.channel.send(header, [source, *headers], began + limit_s)
            reply, blobs = child.channel.receive(began + limit_s)
            note_confinement(reply)
        except ChildDied as exc:
            died = child.explain(exc)
            if died.cause == "timeout":
                others = "; others of this template took a fraction" if limit_s < self._timeout_s else ""
                return _rejected(f"the compiler did not finish within {limit_s:.3g} s{others}")
            return _rejected(f"the compiler crashed ({died.cause})", died.detail)
        if not kernel.tells_words:
            self._deadlines.took(template, time.monotonic() - began)
        if "crashed" in reply:
            printed = child.tail()
            child.kill()
            return _rejected(str(reply["crashed"])[:500], _tidy(printed, child.private))
        return reply, blobs

    def _take(self, backend: Backend) -> ChildProcess:
        while True:
            try:
                found, child = self._idle.get_nowait()
            except queue.Empty:
                return self._open(backend)
            if found is backend and child.alive:
                return child
            child.kill()

    def _open(self, backend: Backend) -> ChildProcess:
        argument = {"backend": backend.value, "cpu_s": self._timeout_s, "memory_bytes": self._memory_bytes}
        return ChildProcess(
            "warpsmith.sandbox.children.compile_child",
            argument,
            child_environment(backend),
            MAX_REPLY_BYTES,
            preload=preloads(backend),
        )


def _header(configured: ConfiguredKernel, device: DeviceInfo) -> dict[str, Any]:
    kernel = configured.kernel
    return {
        "backend": kernel.backend.value,
        "entry": kernel.entry,
        "options": list(kernel.options),
        "files": list(kernel.files),
        "include_dirs": list(kernel.include_dirs),
        "compiler": kernel.compiler.value,
        "architecture": device.architecture,
        "device_index": device.index,
        "parameters": _parameters(kernel, 0),
        "then": [
            {"entry": step.entry, "parameters": _parameters(kernel, n)}
            for n, step in enumerate(kernel.launches[1:], 1)
        ],
        "expected_launch": configured.expected_launch and configured.expected_launch.model_dump(),
        "arguments": [a.name for a in kernel.arguments],
        "specialisation": configured.specialisation and configured.specialisation.model_dump(mode="json"),
        "tells_words": configured.tells_words,
    }


def _parse(reply: dict[str, Any], blobs: list[Received], private: Path) -> Compiled | Rejected:
    if "rejected" in reply:
        rejected = Rejected.model_validate(reply["rejected"])
        tidied = {"log": _tidy(rejected.log, private), "reason": _tidy(rejected.reason, private)}
        return rejected.model_copy(update=tidied)
    entry, log = str(reply["entry"]), _tidy(str(reply["log"]), private)
    facts = CompileFacts.model_validate(reply["facts"])
    return Compiled(
        binary=bytes(blobs[0]),
        entry=entry,
        facts=facts,
        log=log,
        globals=tuple(str(name) for name in reply["globals"]),
        unnamed=tuple(str(name) for name in reply["unnamed"]),
        telling=tuple(str(word) for word in reply["telling"]),
        may_tell=bool(reply["may_tell"]),
        way=str(reply["way"]),
        then_entries=tuple(str(name) for name in reply["then_entries"]),
    )


def _parameters(kernel: Kernel, step: int) -> list[tuple[Any, ...]]:
    return [dataclasses.astuple(p) for p in parameters_of(kernel.of_step(step))]


def _template(kernel: ConfiguredKernel) -> str:
    """Hash of everything that the configurations of a template have in common: text, options, files."""
    asked = kernel.kernel
    parts = [asked.text, asked.compiler.value, *asked.options, *asked.includes]
    parts += [text for item in asked.files.items() for text in item]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _tidy(log: str, private: Path) -> str:
    """Replace private folders in compiler messages, so that equal errors have equal texts."""
    log = re.sub(rf"{re.escape(str(private))}/(tmp\w+/)?({SENT}/)?(\./)?", "", log)
    log = log.replace(f"/proc/self/cwd/{POCL_CACHE}/", "")
    return re.sub(r"\b(tmp\w+/)?tempfile_\w+\.cl\b", "kernel.cl", log)[:MAX_LOG_CHARACTERS]


def _rejected(reason: str, log: str = "") -> Rejected:
    return Rejected(stage=Stage.COMPILE, reason=reason, log=log[:MAX_LOG_CHARACTERS])
