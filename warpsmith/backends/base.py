"""What a back end offers. This code runs inside children only, never in a worker or the API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import BufferPlan, Compiled, LaunchSize
from warpsmith.domain.template import ExpectedLaunch

Array = NDArray[np.generic]


@dataclass(frozen=True)
class CompileRequest:
    """Everything a compile child gets.

    `source` has its macros already set; `entry` is a function name or a C++ name expression.
    """

    backend: Backend
    source: str
    entry: str
    options: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    compiler: str
    architecture: str
    device_index: int
    headers: tuple[str, ...] = ()
    """Texts of the headers that came with the source; they lie in `include_dirs`."""
    has_other_headers: bool = False
    """Whether `include_dirs` has folders of the operator's as well."""
    expected_launch: ExpectedLaunch | None = None
    """The launch to finish the binary for; a hint."""

    @property
    def whole_text(self) -> str:
        """The source and every header that came with it."""
        return "\n".join((self.source, *self.headers))


class Memory(Protocol):
    """A stretch of device memory."""

    size_bytes: int

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        """Copy host data in; returns when it is there."""
        ...

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """Copy to the host."""
        ...

    def copy_from(self, other: "Memory", size_bytes: int, offset_bytes: int = 0) -> None:
        """Copy device to device, same offset on both sides."""
        ...

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        """Fill with a repeated pattern of 1, 2 or 4 bytes."""
        ...

    def free(self) -> None:
        """Give it back."""
        ...


Pointer = tuple[Memory, int]
"""Memory and the offset in bytes at which an argument begins (guard zones stand around it; 0 for images)."""


@dataclass(frozen=True)
class LocalSlot:
    """A `__local` argument: which of `LaunchSize.local_bytes` says its size."""

    position: int


Bound = Pointer | np.generic | LocalSlot
"""One bound kernel argument: a pointer, a NumPy scalar of the argument's exact type, or local memory."""


class Program(Protocol):
    """A loaded binary with its entry."""

    def unload(self) -> None:
        """Drop it."""
        ...

    def changed_globals(self) -> list[str]:
        """Device variables, of those that can be read, that are not what they were after loading."""
        ...


class Watch(Protocol):
    """What happens around timed samples, untimed."""

    def before(self, sample: int | None, launches: int) -> None:
        """Called before every sample (None: a warm-up) with the launches that it will have."""
        ...

    def after(self, sample: int) -> None:
        """Called after every sample, when its launches have ended."""
        ...


class Device(Protocol):
    """One opened device. Faults raise `DeviceFault`; after that the process must end."""

    info: DeviceInfo

    def allocate(self, size_bytes: int) -> Memory:
        """Device memory, contents undefined."""
        ...

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """An image, contents undefined; its bytes count row by row, without padding.

        Raises:
            LaunchRefused: the device has no images, none of that format, or none so large.
        """
        ...

    def load(self, compiled: Compiled) -> Program:
        """Load a binary. Raises `LaunchRefused` when the driver will not take it."""
        ...

    def launch(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Launch once and wait.

        Raises:
            LaunchRefused: the driver refused the launch; the device is still well.
            DeviceFault: the launch faulted.
        """
        ...

    def time(
        self,
        program: Program,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        samples: Callable[[float], int],
        launches: int,
        watch: Watch,
        stop: Callable[[Sequence[float]], bool],
        in_place: bool = False,
    ) -> tuple[list[float], int]:
        """Device time of one launch, in µs, once a sample; and the launches a sample had.

        Launches walk through `argument_sets` and begin again behind the last, from one sample to the next.
        `samples` says how many there are, from what one will take in µs (0: not known), before any is timed.
        `launches` 0: choose, so that a sample is well above the resolution of the clock.
        `watch` is called, untimed, before and after every sample.
        `stop` is asked after every sample whether to give up.
        `in_place`: launches change what later ones read. `watch` restores it; until then no set is launched
        twice. A sample has every set, or, where launches are long, fewer: see `launches_in_place`.
        """
        ...

    def close(self) -> None:
        """Let go of the device before the process ends by itself."""
        ...


class BackendModule(Protocol):
    """One module per back end (`cuda`, `opencl`, `hip`) offers these at top level."""

    def probe(self) -> list[DeviceInfo]:
        """The devices of this machine.

        Raises:
            Unavailable: none, or a package or driver is missing; says which.
        """
        ...

    def open_device(self, index: int) -> Device:
        """Open a device in this process."""
        ...

    def compile_source(self, request: CompileRequest) -> Compiled | Rejected:
        """Compile; a bad source or option is a `Rejected`."""
        ...

    def check_options(self, options: Sequence[str]) -> Mapping[str, str]:
        """Options that are not on the allow-list, with what is allowed instead; empty when fine."""
        ...


LONG_SAMPLE_IN_PLACE_US = 20_000.0
"""A sample of a kernel that works in place is not made longer than this by launches of its other sets."""


def launches_in_place(sets: int, once_us: float) -> int:
    """Launches of a sample of a kernel that works in place.

    All sets, because what was restored last is still in a cache, and would be all that a short sample sees.
    That is nothing beside a launch of some milliseconds, which follows from its time like any other.

    Args:
        sets: that there are.
        once_us: what one launch takes.
    """
    return max(1, min(sets, int(LONG_SAMPLE_IN_PLACE_US / max(once_us, 1.0))))


class LaunchRefused(Exception):
    """The driver refused a launch or a binary; the device is still well."""


class DeviceFault(Exception):
    """The device faulted; this process cannot be trusted with it any more."""
