"""NVIDIA's Nsight Compute over one launch of a kernel, in a child of its own."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.plan import Compiled, LaunchSize, WorkloadPlan
from warpsmith.errors import ChildDied, KernelRefused, Unavailable
from warpsmith.measure.ncu import options, parse
from warpsmith.sandbox.device_host import ChildOpener

LOG = "ncu.csv"
WELL_KNOWN = (Path("/usr/local/cuda/bin/ncu"), Path("/opt/cuda/bin/ncu"))


@dataclass(frozen=True)
class NsightCompute:
    """Implements `tuning.ports.CountersPort` for a CUDA device."""

    opener: ChildOpener
    program: Path

    def counters(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, float]:
        """See `CountersPort.counters`."""
        under = [str(self.program), *options(f"{{private}}/{LOG}", compiled.entry)]
        try:
            device = self.opener.open_watched(under)
            try:
                device.prepare(plan)
                handle = device.load(compiled)
                device.run(handle, plan.key, size, {b.name: [(0, 1)] for b in plan.mutated})
                return parse(device.finish(LOG))
            finally:
                device.close()
        except (ChildDied, KernelRefused) as exc:
            raise Unavailable(f"ncu: {exc}") from exc


def profiler_for(device: DeviceInfo, opener: ChildOpener) -> NsightCompute | None:
    """The profiler of a device; None where the platform has none, or it is not installed."""
    if device.backend is not Backend.CUDA:
        return None
    found = shutil.which("ncu")
    program = Path(found) if found else next((p for p in WELL_KNOWN if p.exists()), None)
    return None if program is None else NsightCompute(opener, program)
