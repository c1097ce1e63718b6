"""Devices, with the properties that tuning needs."""

import re
from collections.abc import Mapping
from enum import StrEnum

from warpsmith.domain.base import Frozen
from warpsmith.domain.expressions import Value
from warpsmith.domain.language import Language, language_named, languages


class Backend(StrEnum):
    """Languages and runtimes with which kernels are compiled and run."""

    CUDA = "cuda"
    OPENCL = "opencl"
    HIP = "hip"
    TRITON = "triton"
    REPLAY = "replay"
    """Recorded timings: nothing is compiled, run or checked. For tests of the service only."""

    @classmethod
    def _missing_(cls, value: object) -> "Backend | None":
        if (language := language_named(value)) is None:
            return None
        member = str.__new__(cls, language.name)
        member._name_, member._value_ = language.name.upper(), language.name
        return cls._value2member_map_.setdefault(language.name, member)  # type: ignore[return-value]

    @property
    def language(self) -> Language:
        """The language of its kernels."""
        return languages()[self.value]

    @property
    def runs_on(self) -> tuple["Backend", ...]:
        """The back ends of the devices that run it: Triton's binaries are CUDA's, and HIP has a way there."""
        return tuple(Backend(name) for name in self.language.devices)


def written_backends() -> tuple[Backend, ...]:
    """The back ends whose kernels have a source, in the order in which languages are registered."""
    return tuple(Backend(language.name) for language in languages().values() if not language.is_recorded)


def is_nvidia(architecture: str) -> bool:
    """True for architectures whose binaries are cubins, such as `sm_90`."""
    return architecture.startswith("sm_")


def is_amd(architecture: str) -> bool:
    """True for architectures of AMD, such as `gfx942`."""
    return architecture.startswith("gfx")


def lacking(unavailable: Mapping[str, str], backend: Backend) -> str:
    """Reasons why no device of a machine runs kernels of a back end; empty if the machine does not say.

    Args:
        unavailable: the machine's reasons by back end; those of all back ends of devices count.
    """
    names = dict.fromkeys((backend.value, *(b.value for b in backend.runs_on)))
    return "; ".join(dict.fromkeys(unavailable[name] for name in names if name in unavailable))


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
    max_threads_per_multiprocessor: int = 2048
    registers_per_block: int = 65536
    l2_bytes: int = 0
    """Bytes of the last-level cache before device memory; 0 if the platform does not report it."""
    total_memory_bytes: int = 0

    def scope(self) -> dict[str, Value]:
        """Names that expressions may use: `device.warp_size` and the others."""
        return {f"device.{name}": value for name, value in self.model_dump().items()}


class Ceilings(Frozen):
    """Peak rates of a device, measured by the service's own kernels."""

    cold_bytes_per_s: float
    """Bytes read plus bytes written per second by a copy whose inputs are not in the last-level cache."""
    hot_bytes_per_s: float
    """Bytes read plus bytes written per second by a copy whose inputs are in the last-level cache."""
    flops_per_s: float
    """Single-precision operations per second; a fused multiply-add counts as two."""
    launch_us: float
    """Device time of an empty kernel, µs."""


class DeviceInfo(Frozen):
    """A device of a worker, with its driver and limits."""

    backend: Backend
    index: int
    """Number of the device within its back end and process; not stable across machines."""
    uid: str
    """Identifier that stays with the hardware: the GPU UUID, or platform and name for OpenCL."""
    name: str
    driver: str
    architecture: str
    """`sm_90` for CUDA; `gfx942` for HIP on AMD; the OpenCL C version for OpenCL."""
    compiler: str = ""
    """Version of the driver's own compiler: of the platform for OpenCL; empty where no driver compiles."""
    limits: DeviceLimits
    shares_host: bool = False
    """True if kernels run on the host's own cores; nothing may then compile during a timing."""
    host_memory_bytes: int = 0
    """Bytes of memory of the worker's machine or container; 0 if unknown."""

    @property
    def device_class(self) -> str:
        """Back end, chip name and driver, in `[a-z0-9.-]`. Timings are comparable within a device class."""
        return _slug(f"{self.backend.value}-{self.name}-{self.driver}")

    @property
    def chip(self) -> str:
        """Back end and chip name, in `[a-z0-9.-]`: the device class without the driver."""
        return _slug(f"{self.backend.value}-{self.name}")

    def scope(self) -> dict[str, Value]:
        """Names that expressions may use: those of its limits."""
        return self.limits.scope()


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")[:120]
