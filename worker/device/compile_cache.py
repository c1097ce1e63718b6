"""Compiled kernels in a folder that workers may share, by the hash of everything that determines them."""

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith import __version__
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts, Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.tuning.ports import CompilerPort

FORMAT = 6
SWEEP_S = 300.0
KEEP = 0.8
"""Fraction of the size limit that a sweep leaves."""

log = logging.getLogger(__name__)


class ArtifactStore:
    """Binaries on disk, each with its own digest: a damaged one counts as missing.

    Args:
        folder: folder, trusted like the program itself: its content is run on devices.
        limit_bytes: size limit; the least recently used binaries are removed first.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._sweep_at = time.monotonic()

    def get(self, key: str) -> Compiled | None:
        """The binary stored under the key; None if there is no intact one."""
        path = self._path(key)
        try:
            found = unpack(path.read_bytes())
            os.utime(path)
        except OSError:
            return None
        return found

    def put(self, key: str, compiled: Compiled) -> None:
        """Store a binary; if the disk is full, it is compiled again next time."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Written under another name first, so that a reader sees all of it or nothing.
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(descriptor, "wb") as file:
                file.write(pack(compiled))
            Path(name).replace(path)
            self._sweep()
        except OSError as exc:
            log.warning("a compiled kernel was not stored: %s", exc)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key

    def _sweep(self) -> None:
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + SWEEP_S
        found = []
        for path in self._folder.glob("??/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        size = sum(entry[1] for entry in found)
        if size <= self._limit_bytes:
            return
        for _, bytes_, path in sorted(found, key=lambda entry: entry[0]):
            if size <= self._limit_bytes * KEEP:
                return
            path.unlink(missing_ok=True)
            size -= bytes_


class CachedCompiler:
    """Implements `tuning.ports.CompilerPort` over another one, and reads earlier results from the store."""

    def __init__(self, inner: CompilerPort, store: ArtifactStore) -> None:
        self._inner = inner
        self._store = store
        self.hits = 0

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """See `CompilerPort.submit`."""
        key = artifact_key(kernel, device)
        if key is None:
            return self._inner.submit(kernel, device)
        found = self._store.get(key)
        if found is not None:
            self.hits += 1
            ready: Future[Compiled | Rejected] = Future()
            ready.set_result(found)
            return ready
        future = self._inner.submit(kernel, device)
        future.add_done_callback(lambda done: self._keep(key, done))
        return future

    def _keep(self, key: str, done: "Future[Compiled | Rejected]") -> None:
        if done.cancelled() or done.exception() is not None:
            return
        result = done.result()
        if isinstance(result, Compiled):
            self._store.put(key, result)


def pack(compiled: Compiled) -> bytes:
    """A binary with its facts and a digest of both, as bytes."""
    fields = {
        "entry": compiled.entry,
        "facts": compiled.facts.model_dump(mode="json"),
        "log": compiled.log,
        "globals": compiled.globals,
        "unnamed": compiled.unnamed,
        "telling": compiled.telling,
        "may_tell": compiled.may_tell,
        "then_entries": compiled.then_entries,
    }
    rest = json.dumps(fields).encode() + b"\n" + compiled.binary
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def unpack(data: bytes) -> Compiled | None:
    """The inverse of `pack`; None if the data are damaged."""
    digest, _, rest = data.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    header, _, binary = rest.partition(b"\n")
    try:
        fields = json.loads(header)
        return Compiled(
            binary=binary,
            entry=str(fields["entry"]),
            facts=CompileFacts.model_validate(fields["facts"]),
            log=str(fields["log"]),
            globals=tuple(str(name) for name in fields["globals"]),
            unnamed=tuple(str(name) for name in fields["unnamed"]),
            telling=tuple(str(word) for word in fields["telling"]),
            may_tell=bool(fields["may_tell"]),
            then_entries=tuple(str(name) for name in fields["then_entries"]),
        )
    except (ValueError, LookupError, TypeError, ValidationError):
        return None


def artifact_key(kernel: ConfiguredKernel, device: DeviceInfo) -> str | None:
    """The hash of everything that determines a binary; None if that is not fully known here.

    Include folders belong to the operator, and their files may change under the same name.
    """
    if kernel.kernel.includes:
        return None
    fields: Mapping[str, Any] = kernel.kernel.model_dump(mode="json", exclude={"source", "source_file"})
    made_from = [
        FORMAT,
        __version__,
        fields,
        kernel.defines,
        kernel.source,
        kernel.expected_launch and kernel.expected_launch.model_dump(),
        kernel.tells_words,
        kernel.specialisation and kernel.specialisation.model_dump(mode="json"),
        kernel.kernel.backend.language.compiler_version(),
        device.backend.value,
        device.name,
        device.architecture,
        device.driver,
        device.compiler,
    ]
    text = json.dumps(made_from, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
