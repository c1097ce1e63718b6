"""Recorded timings served as a device, to test scheduling, search and load without a GPU.

Nothing is compiled, run or checked: a configuration takes its recorded time, whatever the source says. Only
the operator can enable it (`WARPSMITH_REPLAY_DIR`, a folder of `NAME-DEVICE.json` or `.json.gz`). Every
DEVICE becomes one device with its own device class, and a job's `kernel.entry` is the NAME. A recording of
many shapes has a parameter `WS_AT_` and the name for each dimension that differs. No child process is needed,
because no user code is executed.
"""

import gzip
import json
import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingPlan, TimingSamples, WorkloadPlan
from warpsmith.domain.templates.outcome import CompileFacts, Rejected, Stage
from warpsmith.domain.templates.space import SHAPE_PREFIX, configuration_key, is_shape
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import InvalidInput, KernelRefused, Unavailable
from warpsmith.verify.inputs import draw_buffer
from warpsmith.verify.run_report import Array, Ranges, ReferenceCase, RunReport, Timed

DRIVER = "recorded"
LIMITS = DeviceLimits(
    max_threads_per_block=1024,
    max_block_x=1024,
    max_block_y=1024,
    max_block_z=64,
    max_grid_x=2**31 - 1,
    max_grid_y=65535,
    max_grid_z=65535,
    max_shared_per_block=49152,
    multiprocessors=1,
    warp_size=32,
)
"""Limits of no particular device; a recording contains the configurations that failed."""
US_PER_MS = 1000.0


@dataclass(frozen=True)
class Recording:
    """A kernel measured on a device, configuration by configuration."""

    fixed: Mapping[str, Any]
    """Parameters with a single value; a job need not name them."""
    times: Mapping[str, Mapping[str, float | str]]
    """Milliseconds by `configuration_key` and workload (empty: all), or the word for the failure."""

    def look_up(self, configuration: Mapping[str, Any]) -> Mapping[str, float] | Rejected:
        """The recorded times in µs by workload (empty: all), or the rejection that was recorded."""
        known = {n: v for n, v in self.fixed.items() if n not in configuration}
        own = {n: v for n, v in configuration.items() if not is_shape(n)}
        found, chosen = self.times.get(configuration_key({**known, **own}), {}), _workload(configuration)
        if chosen in found:
            found = {chosen: found[chosen]}
        timed = {n: ms * US_PER_MS for n, ms in found.items() if not isinstance(ms, str)}
        if timed or not found:
            return timed or Rejected(stage=Stage.SPACE, reason="this configuration was not recorded")
        words = str(next(iter(found.values())))
        stage = Stage.COMPILE if "Compil" in words else Stage.RUN
        return Rejected(stage=stage, reason=f"it failed when it was recorded: {words}"[:2000])


def _workload(entry: Mapping[str, Any]) -> str:
    """Key of the workload that an entry of many shapes names; empty for one of a single shape."""
    return ",".join(f"{n.removeprefix(SHAPE_PREFIX)}={entry[n]}" for n in sorted(entry) if is_shape(n))


@lru_cache(maxsize=32)
def load_recording(path: Path) -> Recording:
    """Read one file: `tune_params` (values by name) and `cache` (an entry with `time` in ms each).

    Raises:
        Unavailable: the file has another form.
    """
    try:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        data = json.loads(text)
        parameters: dict[str, list[Any]] = data["tune_params"]
        times: dict[str, dict[str, float | str]] = {}
        for entry in data["cache"].values():
            key = configuration_key({name: entry[name] for name in parameters if not is_shape(name)})
            value = entry["time"]
            timed = isinstance(value, int | float) and math.isfinite(value) and value > 0
            times.setdefault(key, {})[_workload(entry)] = float(value) if timed else str(value)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as exc:
        raise Unavailable(f"{path.name} is not a recording: {type(exc).__name__}: {exc}") from exc
    return Recording({n: v[0] for n, v in parameters.items() if len(v) == 1}, times)


def recordings(folder: Path) -> dict[str, dict[str, Path]]:
    """Recording files by device and by kernel name."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted([*folder.glob("*-*.json"), *folder.glob("*-*.json.gz")]):
        name, device = path.name.removesuffix(".gz").removesuffix(".json").split("-", 1)
        found.setdefault(device, {})[name] = path
    return found


def probe(folder: Path) -> list[DeviceInfo]:
    """Find a replay device for each recorded device.

    Every process gets devices of its own, so any number of workers may serve the same recording.

    Raises:
        Unavailable: the folder has no recording.
    """
    found = recordings(folder)
    if not found:
        raise Unavailable(f"no NAME-DEVICE.json or NAME-DEVICE.json.gz in the replay folder {folder.name}")
    return [
        DeviceInfo(
            backend=Backend.REPLAY,
            index=index,
            uid=f"{device}-{os.getpid()}-{secrets.token_hex(4)}",
            name=device,
            driver=DRIVER,
            architecture=DRIVER,
            limits=LIMITS,
        )
        for index, device in enumerate(found)
    ]


@dataclass(frozen=True)
class ReplayCompiler:
    """Implements `tuning.ports.CompilerPort`: the "binary" is the recorded time."""

    folder: Path

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """Look the configuration up."""
        future: Future[Compiled | Rejected] = Future()
        entry = kernel.kernel.entry
        path = recordings(self.folder).get(device.name, {}).get(entry)
        if path is None:
            reason = f"there is no recording of {entry!r} on {device.name}"
            future.set_result(Rejected(stage=Stage.COMPILE, reason=reason[:2000]))
            return future
        found = load_recording(path).look_up(kernel.configuration)
        if isinstance(found, Rejected):
            future.set_result(found)
        else:
            future.set_result(Compiled(json.dumps(found).encode(), entry, CompileFacts()))
        return future


@dataclass
class ReplayDevice:
    """Implements `tuning.ports.DevicePort`. A trial takes `trial_s`, spent when its binary is loaded."""

    info: DeviceInfo
    trial_s: float
    _plans: dict[CaseKey, WorkloadPlan] = field(default_factory=dict)
    _loaded: list[Mapping[str, float]] = field(default_factory=list)

    def prepare(self, plan: WorkloadPlan, guards: GuardZones | None = None) -> None:
        """See `DevicePort.prepare`."""
        self._plans[plan.key] = plan

    def release(self, case: CaseKey) -> None:
        """See `DevicePort.release`."""
        self._plans.pop(case, None)

    def load(self, compiled: Compiled) -> int:
        """See `DevicePort.load`."""
        time.sleep(self.trial_s)
        self._loaded.append(json.loads(compiled.binary))
        return len(self._loaded) - 1

    def unload(self, handle: int) -> None:
        """See `DevicePort.unload`."""

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
        """Stand-in values equal to those expected: a recording holds no results, so nothing can be
        checked."""
        outputs = stand_in(self._plans[case])
        if ranges is not None:
            outputs = {n: np.concatenate([v[a:b] for a, b in ranges[n]]) for n, v in outputs.items()}
        return RunReport(outputs, (), (), outputs if repeat else None)

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        """The recorded time, the same for every cache state; nothing ran, so no report."""
        times, launches = self._loaded[handle], max(1, plan.launches)
        time_us = times.get("") or times.get(self._plans[case].workload)
        if time_us is None:
            raise KernelRefused(f"it has no recorded time on {self._plans[case].workload}")
        samples = TimingSamples((time_us,) * plan.samples, launches)
        return Timed(samples, None, time_us * plan.samples * launches / 1e6)

    def close(self) -> None:
        """See `DevicePort.close`."""


@dataclass(frozen=True)
class ReplayOpener:
    """Implements `tuning.ports.DeviceOpener`."""

    info: DeviceInfo
    trial_s: float = 0.0

    def open(self) -> ReplayDevice:
        """A fresh device."""
        return ReplayDevice(self.info, self.trial_s)


class ReplayReference:
    """Implements `tuning.ports.ReferencePort` without running the job's reference."""

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """Stand-in values for each case, the same as those of `ReplayDevice.run`."""
        return [stand_in(plan) for plan, _ in cases]

    def halt(self) -> None:
        """See `ReferencePort.halt`: nothing runs."""

    def go_on(self) -> None:
        """See `ReferencePort.go_on`."""


def stand_in(plan: WorkloadPlan) -> dict[str, Array]:
    """Values that stand for a kernel's result. They depend only on the plan and are never constant."""
    return {b.name: draw_buffer(b, plan.seed, variant=1) for b in plan.mutated}
