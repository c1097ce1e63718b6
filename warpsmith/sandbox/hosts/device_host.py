"""Devices from the worker's side: probing, and opening children that can be killed."""

import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from warpsmith.child_environment import child_environment, preloads
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend, DeviceInfo, lacking
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingPlan, TimingSamples, WorkloadPlan
from warpsmith.domain.language import languages
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.processes.child_deadlines import START_S, WATCHED_RATIO
from warpsmith.sandbox.confinement.confine import machine_memory
from warpsmith.sandbox.hosts import spare_children
from warpsmith.sandbox.memory.buffers import to_arrays
from warpsmith.sandbox.transport.frames import Blob, Received
from warpsmith.sandbox.transport.messages import (
    Json,
    case_to_json,
    plan_to_json,
    size_to_json,
    timing_to_json,
)
from warpsmith.sandbox.transport.process import ChildProcess, note_confinement
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.verify.checked_ranges import sample_ranges
from warpsmith.verify.run_report import Ranges, RunReport, Timed, TimedReport

OPEN_TIMEOUT_S = START_S
REPEATED_BYTES = 32 << 20
REPEATED_ELEMENTS = 1 << 20
"""Bytes of all outputs up to which those of a repeated launch are brought back whole; elements of each output
that are brought back above it."""
PREPARE_BYTES_PER_S = 200e6
"""Slowest rate in bytes per second at which inputs are drawn and uploaded; sets the deadline of `prepare`."""


@dataclass(frozen=True)
class Probe:
    """Devices of this machine."""

    devices: tuple[DeviceInfo, ...]
    unavailable: Mapping[str, str]
    """Back ends whose kernels no device of this machine runs, with the reason."""

    def lacking(self, backend: Backend) -> str:
        """Reason why no device of this machine runs kernels of a back end."""
        return lacking(self.unavailable, backend) or f"no {backend.runs_on[-1].value} device was found"


def probed_backends() -> list[Backend]:
    """Back ends with devices of their own, best first."""
    ranked = ((la.probe_rank, name) for name, la in languages().items() if la.probe_rank is not None)
    return [Backend(name) for _, name in sorted(ranked)]


def probe_devices(backends: Sequence[Backend] | None = None) -> Probe:
    """Look for devices in a child process, so that this process never loads a driver.

    Args:
        backends: back ends to ask, all in one child; None: all that have devices.

    Raises:
        ChildDied: a driver crashed or hung.
    """
    child = ChildProcess(
        "warpsmith.sandbox.children.device_child",
        {"probe": [b.value for b in (probed_backends() if backends is None else backends)]},
        child_environment(None),
        preload=preloads(None),
    )
    try:
        reply, _ = child.channel.receive(time.monotonic() + OPEN_TIMEOUT_S, 0)
    except ChildDied as exc:
        raise child.explain(exc) from exc
    finally:
        child.kill()
    memory = machine_memory()
    devices = tuple(DeviceInfo.model_validate({**d, "host_memory_bytes": memory}) for d in reply["devices"])
    runs = {d.backend for d in devices}
    # HIP's kernels run on devices of CUDA, too: that it has none of its own hinders nobody there.
    hindered = {n: why for n, why in reply["unavailable"].items() if runs.isdisjoint(Backend(n).runs_on)}
    return Probe(devices, hindered)


@dataclass(frozen=True)
class ChildOpener:
    """Implements `tuning.ports.DeviceOpener`.

    Args:
        run_timeout_s: deadline of one launch or one timing.
        memory_bytes: limit on the host memory of a child; 0: three quarters of the machine's memory.
    """

    info: DeviceInfo
    run_timeout_s: float = 20
    memory_bytes: int = 0

    def open(self) -> "ChildDevice":
        """A fresh process with a context of its own.

        Raises:
            ChildDied: the device cannot be opened.
        """
        device = self._waiting()
        if device is None:
            device = ChildDevice(self.info, self._start(False, ()), self.run_timeout_s)
            device.wait_ready()
        self.warm()
        return device

    def warm(self) -> None:
        """Start children that the next calls of `open` find waiting."""
        # If kernels run on the host's cores, a starting child would slow down a timing.
        if not self.info.shares_host:
            spare_children.refill(self.info.uid, lambda: self._start(False, ()))

    def _waiting(self) -> "ChildDevice | None":
        """A child that was started in advance, if one is left and the device opens in it; else None."""
        process = spare_children.take(self.info.uid)
        if process is None:
            return None
        device = ChildDevice(self.info, process, self.run_timeout_s)
        try:
            device.wait_ready()
        except ChildDied:
            return None
        return device

    def open_watched(self, under: Sequence[str]) -> "WatchedDevice":
        """A child under a sanitizer, without guard zones, so that the sanitizer sees the buffers' true
        bounds.

        Raises:
            ChildDied: the device cannot be opened.
        """
        device = self.start_watched(under)
        device.wait_ready()
        return device

    def start_watched(self, under: Sequence[str]) -> "WatchedDevice":
        """Start a child as `open_watched` does, without waiting; `wait_ready` waits for it."""
        # Instrumented code is slower by one or two orders of magnitude.
        process = self._start(True, under)
        device = WatchedDevice(self.info, process, WATCHED_RATIO * self.run_timeout_s)
        device.ask_to_open()
        return device

    def _start(self, watched: bool, under: Sequence[str]) -> ChildProcess:
        argument = {
            "backend": self.info.backend.value,
            "index": self.info.index,
            "watched": watched,
            "memory_bytes": self.memory_bytes,
        }
        backend = self.info.backend
        return ChildProcess(
            "warpsmith.sandbox.children.device_child",
            argument,
            child_environment(backend),
            under=under,
            preload=preloads(backend),
        )


@dataclass
class ChildDevice:
    """Implements `tuning.ports.DevicePort` with one child."""

    info: DeviceInfo
    _process: ChildProcess
    _run_timeout_s: float
    _plans: dict[CaseKey, WorkloadPlan] = field(default_factory=dict)
    _asked_to_open: bool = False
    _is_open: bool = False

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Wait until the child has opened the device. Raises `ChildDied` as `DevicePort` describes.

        Args:
            timeout_s: seconds; None waits as long as a child may take to open a device.
        """
        if self._is_open:
            return
        if not self._asked_to_open:
            self.ask_to_open()
        reply, _ = self._receive(OPEN_TIMEOUT_S if timeout_s is None else timeout_s, 0)
        self._is_open = True
        note_confinement(reply)

    def ask_to_open(self) -> None:
        """Have the child open the device. Raises `ChildDied` if it is gone."""
        self._send({"do": "open"}, OPEN_TIMEOUT_S)
        self._asked_to_open = True

    def prepare(self, plan: WorkloadPlan, guards: GuardZones | None = None) -> None:
        """See `DevicePort.prepare`."""
        total = sum(b.size_bytes for b in plan.buffers if b.role is not Role.OUTPUT)
        request = {"do": "prepare", "plan": plan_to_json(plan), "guards": asdict(guards or GuardZones())}
        self._ask(request, self._long(total))
        self._plans[plan.key] = plan

    def release(self, case: CaseKey) -> None:
        """See `DevicePort.release`."""
        self._ask({"do": "release", "case": case_to_json(case)}, self._run_timeout_s)
        self._plans.pop(case, None)

    def load(self, compiled: Compiled) -> int:
        """See `DevicePort.load`."""
        request = {"do": "load", "entries": list(compiled.entries), "globals": list(compiled.globals)}
        reply, _ = self._ask(request, self._run_timeout_s, [compiled.binary])
        with self._well_formed():
            return int(reply["handle"])

    def unload(self, handle: int) -> None:
        """See `DevicePort.unload`."""
        self._ask({"do": "unload", "handle": handle}, self._run_timeout_s)

    def run(
        self,
        handle: int,
        case: CaseKey,
        size: LaunchSize,
        ranges: Mapping[str, Ranges] | None = None,
        *,
        repeat: bool = False,
        poison: bool = True,
    ) -> RunReport:
        """See `DevicePort.run`."""
        plan = self._plans[case]
        asked = None if ranges is None else {name: list(spans) for name, spans in ranges.items()}
        again = _sampled(plan) if repeat and ranges is None else None
        request = {
            "do": "run",
            "handle": handle,
            "case": case_to_json(case),
            "size": size_to_json(size),
            "ranges": asked,
            "repeat": repeat,
            "again": again,
            "poison": poison,
        }
        most = _most_bytes(plan, ranges) + (_most_bytes(plan, again or ranges) if repeat else 0)
        reply, blobs = self._ask(request, self._run_timeout_s, most_bytes=most)
        with self._well_formed():
            count = len(plan.mutated)
            if len(blobs) != count * (1 + repeat):
                raise ValueError("outputs that were not asked for")
            report = _report(plan, reply, blobs[:count], ranges)
            if not repeat:
                return report
            second = _report(plan, reply, blobs[count:], again or ranges)
            return replace(report, repeated=second.outputs, repeated_ranges=again or {})

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        """See `DevicePort.time`."""
        request = {
            "do": "time",
            "handle": handle,
            "case": case_to_json(case),
            "size": size_to_json(size),
            "plan": timing_to_json(plan),
        }
        workload_plan = self._plans[case]
        total = sum(b.size_bytes for b in workload_plan.buffers)
        most = 0 if plan.check is None else _most_bytes(workload_plan, plan.check.ranges)
        began = time.monotonic()
        reply, blobs = self._ask(request, self._long(4 * total), most_bytes=most)
        wall_s = time.monotonic() - began
        with self._well_formed():
            samples = tuple(float(s) for s in reply["samples_us"])
            if not samples or not all(0 < s < math.inf for s in samples):
                raise ValueError("samples that are no times")
            complete = bool(reply["complete"])
            if complete and plan.check is not None and "names" not in reply:
                raise ValueError("a timed launch that was not looked at")
            timed = TimingSamples(samples, int(reply["launches"]), complete)
            if plan.check is None or "names" not in reply:
                return Timed(timed, None, wall_s)
            other = bool(reply["other"]) and plan.check.other is not None
            report = TimedReport(_report(workload_plan, reply, blobs, plan.check.ranges), other)
            return Timed(timed, report, wall_s)

    def close(self) -> None:
        """End the child."""
        self._process.kill()

    def _long(self, size_bytes: float) -> float:
        return self._run_timeout_s + size_bytes / PREPARE_BYTES_PER_S

    @contextmanager
    def _well_formed(self) -> Iterator[None]:
        """Context in which a malformed reply ends the child: its kernel may have taken it over."""
        try:
            yield
        except (LookupError, TypeError, ValueError) as exc:
            raise self._process.explain(ChildDied("protocol", f"a bad reply: {exc}")) from exc

    def _ask(
        self, request: Json, timeout_s: float, blobs: Sequence[Blob] = (), most_bytes: int = 0
    ) -> tuple[dict[str, Any], list[Received]]:
        self._send(request, timeout_s, blobs)
        return self._receive(timeout_s, most_bytes)

    def _send(self, request: Json, timeout_s: float, blobs: Sequence[Blob] = ()) -> None:
        try:
            self._process.channel.send(request, blobs, time.monotonic() + timeout_s)
        except ChildDied as exc:
            raise self._process.explain(exc) from exc

    def _receive(self, timeout_s: float, most_bytes: int) -> tuple[dict[str, Any], list[Received]]:
        try:
            with PROGRESS.longer(max(0.0, timeout_s - self._run_timeout_s)):
                reply, blobs = self._process.channel.receive(time.monotonic() + timeout_s, most_bytes)
        except ChildDied as exc:
            raise self._process.explain(self._in_words(exc, timeout_s)) from exc
        if "refused" in reply:
            raise KernelRefused(str(reply["refused"])[:1000])
        if "fault" in reply:
            self._faulted(str(reply["fault"])[:1000])
        return reply, blobs

    def _in_words(self, exc: ChildDied, timeout_s: float) -> ChildDied:
        """The error of a missed deadline, with its length and the setting that controls it."""
        if exc.cause != "timeout":
            return exc
        words = f"no answer within {timeout_s:.3g} s"
        if self._is_open:
            words += f" (WARPSMITH_RUN_TIMEOUT_S is {self._run_timeout_s:g})"
        return ChildDied(exc.cause, words)

    def _faulted(self, words: str) -> NoReturn:
        self._process.kill()
        raise ChildDied("device", words)


@dataclass
class WatchedDevice(ChildDevice):
    """A child under a sanitizer, which writes its findings when the child ends."""

    def finish(self, name: str) -> str:
        """End the child properly; returns the contents of the file `name` in its private folder.

        Raises:
            ChildDied: the child did not end in time, or wrote no file.
        """
        with suppress(ChildDied):  # after a fault it ends by itself
            self._process.channel.send({"do": "end"}, (), time.monotonic() + self._run_timeout_s)
        if not self._process.wait(self._run_timeout_s):
            raise self._process.explain(ChildDied("timeout", "the sanitizer did not end"))
        path = self._process.private / name
        if not path.exists():
            raise self._process.explain(ChildDied("protocol", "the sanitizer wrote nothing"))
        text = path.read_text(errors="replace")
        self.close()
        return text

    def _faulted(self, words: str) -> NoReturn:
        """Report a fault but keep the child, because its sanitizer still has to write findings."""
        raise KernelRefused(words)


def _sampled(plan: WorkloadPlan) -> dict[str, Ranges] | None:
    """Random ranges of the outputs of a repeated launch that are brought back; None: all of them."""
    if _most_bytes(plan, None) <= REPEATED_BYTES:
        return None
    rng = np.random.default_rng(secrets.randbits(128))
    return {b.name: sample_ranges(b.elements, b.shape[-1], rng, REPEATED_ELEMENTS) for b in plan.mutated}


def _most_bytes(plan: WorkloadPlan, ranges: Mapping[str, Ranges] | None) -> int:
    """Bytes of the outputs that are asked for."""
    if ranges is None:
        return sum(b.elements * b.dtype.size_bytes for b in plan.mutated)
    return sum((b - a) * buffer.dtype.size_bytes for buffer in plan.mutated for a, b in ranges[buffer.name])


def _report(
    plan: WorkloadPlan, reply: Json, blobs: Sequence[Received], ranges: Mapping[str, Ranges] | None
) -> RunReport:
    """The run report of a reply. Raises LookupError, TypeError or ValueError if the reply does not match the
    request."""
    outputs = to_arrays(plan, dict(zip(reply["names"], blobs, strict=True)))
    for buffer in plan.mutated:
        wanted = buffer.elements if ranges is None else sum(b - a for a, b in ranges[buffer.name])
        if outputs[buffer.name].size != wanted:
            raise ValueError("a length that was not asked for")
    guards, changed, written = (
        tuple(str(name) for name in reply[k]) for k in ("guards", "changed", "globals")
    )
    poison = {str(name): bytes.fromhex(pattern) for name, pattern in reply.get("poison", {}).items()}
    return RunReport(outputs, guards, changed, changed_globals=written, poison=poison)
