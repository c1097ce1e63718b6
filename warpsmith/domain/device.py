"""What a device is, as far as tuning is concerned."""

import re
from enum import StrEnum

from warpsmith.domain.base import Frozen
from warpsmith.domain.expressions import Value


class Backend(StrEnum):
    """How a kernel is compiled and run."""

    CUDA = "cuda"
    OPENCL = "opencl"
    HIP = "hip"
    REPLAY = "replay"
    """Recorded timings: nothing is compiled, run or checked. For tests of the service only."""


class DeviceLimits(Frozen):
    """Limits that constraints may name as `device.<field>`. Bytes and counts."""

    max_threads_per_block: int
    max_block_x: int
    max_block_y: int
    max_block_z: int
    max_grid_x: int
    max_grid_y: int
    max_grid_z: int
    max_shared_per_block: int
    """Bytes of shared (OpenCL: local) memory one block may use, opt-in included."""
    multiprocessors: int
    """Streaming multiprocessors, or OpenCL compute units."""
    warp_size: int
    registers_per_block: int = 65536
    l2_bytes: int = 0
    """Size of the last cache before device memory; 0 where the platform does not say."""
    total_memory_bytes: int = 0


class Ceilings(Frozen):
    """What a device can do at most, as our own kernels measured it."""

    cold_bytes_per_s: float
    """Bytes read and written a second by a copy, inputs not in the last cache."""
    hot_bytes_per_s: float
    """The same with inputs in the last cache."""
    flops_per_s: float
    """Single-precision operations a second; a fused multiply-add counts as two."""
    launch_us: float
    """Device time of a kernel that does nothing."""


class DeviceInfo(Frozen):
    """One device of one worker."""

    backend: Backend
    index: int
    """Which device of its back end in this process; not stable across machines."""
    uid: str
    """A name that stays with the hardware (GPU UUID; platform and name for OpenCL)."""
    name: str
    driver: str
    architecture: str
    """`sm_90` for CUDA; the OpenCL C version for OpenCL."""
    limits: DeviceLimits
    shares_host: bool = False
    """Kernels run on the host's own cores, so nothing may compile while something is timed."""
    host_memory_bytes: int = 0
    """What the machine, or the container, of its worker has; 0: not known."""

    @property
    def device_class(self) -> str:
        """What makes timings comparable: back end, chip name and driver, in `[a-z0-9.-]`."""
        words = f"{self.backend.value}-{self.name}-{self.driver}".lower()
        return re.sub(r"[^a-z0-9.]+", "-", words).strip("-")[:120]

    def scope(self) -> dict[str, Value]:
        """Names that expressions may use: `device.warp_size` and the other limits."""
        return {f"device.{name}": value for name, value in self.limits.model_dump().items()}
