"""NVIDIA's Nsight Compute on one launch of a kernel, in a child of its own."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.errors import ChildDied, KernelRefused, Unavailable
from warpsmith.measure.ncu import complaint, options, parse
from warpsmith.sandbox.hosts.device_host import ChildOpener

LOG = "ncu.csv"
WELL_KNOWN = (Path("/usr/local/cuda/bin/ncu"), Path("/opt/cuda/bin/ncu"))


@dataclass(frozen=True)
class NsightCompute:
    """Implements `tuning.ports.CountersPort` for a CUDA device.

    Args:
        program: path of ncu; None if it is not installed.
    """

    opener: ChildOpener
    program: Path | None

    def counters(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, float]:
        """See `CountersPort.counters`."""
        if size.then:
            raise Unavailable("hardware counters of a sequence of launches are not read yet")
        if self.program is None:
            raise Unavailable("ncu is not installed on this worker; it comes with the CUDA toolkit")
        if not os.access(self.program, os.X_OK):
            raise Unavailable(f"{self.program} is not a program that this worker may run")
        # The log lies outside the child's folder, which is removed when the child dies; the log then has the
        # reason.
        with tempfile.TemporaryDirectory(prefix="warpsmith-ncu-") as folder:
            log = Path(folder, LOG)
            try:
                return self._counters(
                    [str(self.program), *options(str(log), compiled.entry)], log, compiled, plan, size
                )
            except (ChildDied, KernelRefused, OSError) as exc:
                said = complaint(log.read_text(errors="replace")) if log.exists() else ""
                words = str(exc).replace("the sanitizer", "it")
                raise Unavailable(f"ncu: {said or words}") from exc
            except Unavailable as exc:
                raise Unavailable(f"ncu: {exc}") from exc

    def _counters(
        self, under: list[str], log: Path, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize
    ) -> Mapping[str, float]:
        device = self.opener.open_watched(under)
        try:
            device.prepare(plan)
            handle = device.load(compiled)
            device.run(handle, plan.key, size, {b.name: [(0, 1)] for b in plan.mutated})
            return parse(device.finish(str(log)))
        finally:
            device.close()


def profiler_for(device: DeviceInfo, opener: ChildOpener) -> NsightCompute | None:
    """The profiler of a device; None if the platform has none."""
    if not device.backend.language.has_nvidia_tools:
        return None
    return NsightCompute(opener, find_ncu())


def find_ncu() -> Path | None:
    """Nsight Compute of this machine; None if it is not installed."""
    found = shutil.which("ncu")
    return Path(found) if found else next((p for p in WELL_KNOWN if p.exists()), None)
