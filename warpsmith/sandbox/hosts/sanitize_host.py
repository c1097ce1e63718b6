"""NVIDIA's compute-sanitizer on one launch of a kernel, with one child per tool."""

import re
import shutil
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.errors import ChildDied, KernelRefused, Unavailable
from warpsmith.sandbox.hosts.device_host import ChildOpener, WatchedDevice
from warpsmith.sandbox.hosts.guard_pages_host import GuardPages

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
LOG = "sanitizer.log"
PADDING_BYTES = 4096
CONTEXT_BYTES = 3 << 28
"""Device memory of a child under a tool, without its buffers."""
SETTLE_S = 5.0
"""Limit in seconds on waiting for children that were started in advance."""
MEMORY_SHARE = 8
"""Children that wait take at most this fraction of the device's memory: one part of so many."""
WELL_KNOWN = (Path("/usr/local/cuda/bin/compute-sanitizer"), Path("/opt/cuda/bin/compute-sanitizer"))
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
_LINE = re.compile(r"^=+ ?(.*)$", re.MULTILINE)
_NOT_A_FINDING = re.compile(
    r"^\s*$|COMPUTE-SANITIZER|SUMMARY|Target application|^\s+(at|by|Saved|Host Frame|in|and|Address|Access)\b"
)
# `Potential`: racecheck sees no mbarrier by which a block of a cluster waits for what another writes to it.
_WARNING = re.compile(r"(?:Warning|Info): |(?=Potential )")


def find_sanitizer() -> Path | None:
    """Path of compute-sanitizer; None if it is not installed."""
    found = shutil.which("compute-sanitizer")
    if found is not None:
        return Path(found)
    return next((path for path in WELL_KNOWN if path.exists()), None)


def first_finding(log: str) -> str:
    """The first error in a tool's log, verbatim, or else its first doubt; empty if there is neither.

    Raises:
        Unavailable: the log has no summary, so the tool did not finish.
    """
    summary = _SUMMARY.search(log)
    if summary is None:
        raise Unavailable(f"no summary; the end of its log: {log[-300:].strip()}")
    if int(summary[1] or summary[2] or 0) == 0:
        return ""
    lines = [line.strip() for line in _LINE.findall(log) if not _NOT_A_FINDING.search(line)]
    errors = [line for line in lines if not _WARNING.match(line)]
    if lines and not errors:
        return f"Warning: {_WARNING.sub('', lines[0])}"[:500]
    return (errors[0] if errors else "an error")[:500]


@dataclass(frozen=True)
class Sanitizer:
    """Implements `tuning.ports.SanitizerPort` for a CUDA device."""

    opener: ChildOpener
    program: Path
    _waiting: list[dict[str, WatchedDevice]] = field(default_factory=list, compare=False, repr=False)
    """Children by tool, for as many findings, that were started in advance."""
    _taking: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def expect(self, count: int) -> None:
        """See `SanitizerPort.expect`; as many as the device's memory allows, since each has a context."""
        room = self.opener.info.limits.total_memory_bytes // MEMORY_SHARE // (len(TOOLS) * CONTEXT_BYTES)
        for _ in range(min(count, room) - len(self._waiting)):
            with suppress(ChildDied):
                self._waiting.append({tool: self._started(tool) for tool in TOOLS})

    def settle(self) -> None:
        """See `SanitizerPort.settle`; what is not ready after some seconds is ended."""
        deadline = time.monotonic() + SETTLE_S
        ready = []
        for devices in self._waiting:
            try:
                for device in devices.values():
                    device.wait_ready(max(0.1, deadline - time.monotonic()))
                ready.append(devices)
            except ChildDied:
                for device in devices.values():
                    device.close()
        self._waiting[:] = ready

    def drop(self) -> None:
        """See `SanitizerPort.drop`."""
        while self._waiting:
            for device in self._waiting.pop().values():
                device.close()

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        """See `SanitizerPort.findings`. The tools run concurrently, since nothing is timed meanwhile."""
        with self._taking:
            ready = self._waiting.pop() if self._waiting else {}
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            logs = pool.map(lambda tool: self._run(tool, ready.get(tool), compiled, plan, size), TOOLS)
            return dict(zip(TOOLS, logs, strict=True))

    def _started(self, tool: str) -> WatchedDevice:
        options = ["--tool", tool, "--log-file", f"{{private}}/{LOG}", "--print-limit", "3"]
        if tool == "memcheck":
            # A look-up of a function that this driver lacks is an error to the tool, but harmless here.
            options += ["--report-api-errors", "no"]
            # Allocations are adjacent: without padding, a read beyond one lands in the next and is not
            # found.
            options += ["--padding", str(PADDING_BYTES)]
        if tool == "racecheck":
            options += ["--racecheck-report", "analysis"]
        return self.opener.start_watched([str(self.program), *options])

    def _run(
        self, tool: str, ready: WatchedDevice | None, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize
    ) -> str:
        try:
            device = ready or self._started(tool)
            try:
                device.wait_ready()
                with suppress(KernelRefused):  # a fault, of which the log tells
                    device.prepare(plan)
                    handle = device.load(compiled)
                    # Outputs are left uninitialised, so that a read before the first write is found.
                    first = {b.name: [(0, 1)] for b in plan.mutated}
                    device.run(handle, plan.key, size, first, poison=False)
                return first_finding(device.finish(LOG))
            finally:
                device.close()
        except (ChildDied, Unavailable) as exc:
            raise Unavailable(f"{tool}: {exc}") from exc


def sanitizer_for(device: DeviceInfo, opener: ChildOpener) -> Sanitizer | GuardPages | None:
    """The sanitizer of a device; None if the platform has none."""
    if device.shares_host:
        return GuardPages(opener)
    program = find_sanitizer() if device.backend.language.has_nvidia_tools else None
    return None if program is None else Sanitizer(opener, program)
