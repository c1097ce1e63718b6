"""The interface of back ends. This code runs in child processes only, never in a worker or the API."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.by_value_plan import ParameterSlot
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import PagesAt
from warpsmith.domain.jobs.plan import BufferPlan, Compiled
from warpsmith.domain.kernels.specialisation import Specialisation
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ExpectedLaunch

Array = NDArray[np.generic]
PACKAGE = Path(__file__).resolve().parents[1]
"""The folder below which every header of the service's own lies."""


class CompileWay(StrEnum):
    """A compiler and how it reads a source. Each reads what those before it cannot."""

    NVRTC = "nvrtc"
    NVRTC_ORDINARY = "nvrtc-ordinary"
    NVRTC_HOST_CODE = "nvrtc-host-code"
    NVCC = "nvcc"


class RefusedEveryWay(Rejected):
    """A source that nvcc has refused after NVRTC did."""


@dataclass(frozen=True)
class KernelEntry:
    """A kernel of a source that is launched."""

    entry: str
    parameters: tuple[ParameterSlot, ...] = ()
    """Parameters that the job's arguments need; see `CompileRequest.parameters`."""


@dataclass(frozen=True)
class CompileRequest:
    """Input of a compile child.

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
    """Texts of the headers sent with the source; their files are in `include_dirs`."""
    has_other_headers: bool = False
    """True if `include_dirs` also has folders of the operator."""
    parameters: tuple[ParameterSlot, ...] = ()
    """Parameters that the kernel must have for the job's arguments to be right (CUDA)."""
    then: tuple[KernelEntry, ...] = ()
    """Entries of the further launches of a sequence, in order."""
    expected_launch: ExpectedLaunch | None = None
    """The launch to finish the binary for; a hint."""
    begin_with: str = ""
    """Value of the `CompileWay` that another configuration of the source needed; empty: the first one."""
    arguments: tuple[str, ...] = ()
    """Names of the kernel's arguments, in order (Triton)."""
    specialisation: Specialisation | None = None
    """The variant to compile (Triton)."""
    tells_words: bool = False
    """True to look for environment probes; see `ConfiguredKernel.tells_words`."""
    before: str = ""
    """A header that is read before the source (CUDA)."""
    may_fall_back: bool = True
    """False: nothing but `begin_with` is tried, since the others have not helped this source."""

    @property
    def entries(self) -> tuple[KernelEntry, ...]:
        """The entries of all launches, in order."""
        return (KernelEntry(self.entry, self.parameters), *self.then)

    @property
    def whole_text(self) -> str:
        """The source and every header sent with it."""
        return "\n".join((self.source, *self.headers))


class Memory(Protocol):
    """A stretch of device memory."""

    size_bytes: int
    address: int
    """Device address of the first byte; 0 if the back end passes no addresses (OpenCL)."""

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        """Copy host data in; returns when it is there."""
        ...

    def read(self, offset_bytes: int, size_bytes: int) -> bytes | memoryview:
        """Copy to the host."""
        ...

    def copy_from(self, other: "Memory", size_bytes: int, offset_bytes: int = 0) -> None:
        """Copy device to device, same offset on both sides."""
        ...

    def gather(self, source: "Memory", begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        """Fill the bytes `to` with pieces of another memory, one after the other; the last may be shorter.

        Args:
            begins: byte of `source` at which each piece begins.
        """
        ...

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        """Fill with a repeated pattern of 1, 2 or 4 bytes; offset and size are multiples of its length."""
        ...

    def free(self) -> None:
        """Free the memory."""
        ...


@runtime_checkable
class PageGuarded(Protocol):
    """Memory between pages without access rights."""

    @property
    def reached(self) -> Sequence[str]:
        """Places outside of it at which a launch read or wrote: `before the start`, `past the end`."""
        ...

    @property
    def was_written(self) -> bool:
        """True if a launch wrote to it after `seal`."""
        ...

    def seal(self) -> None:
        """Take the right to write from the memory."""
        ...


def pieces_of(begins: Sequence[int], piece_bytes: int, to: slice) -> Iterator[tuple[int, int, int]]:
    """The copies of `Memory.gather`: where to, where from, and how many bytes."""
    for at, begin in zip(range(to.start, to.stop, piece_bytes), begins, strict=True):
        yield at, int(begin), min(piece_bytes, to.stop - at)


Pointer = tuple[Memory, int]
"""Memory, and the byte offset at which an argument begins after its guard zone (0 for images)."""


@dataclass(frozen=True)
class LocalSlot:
    """A `__local` argument; `position` selects its size in `LaunchSize.local_bytes` of its launch."""

    position: int


@dataclass(frozen=True)
class Packed:
    """A vector or struct by value, as its bytes."""

    data: bytes
    align: int


Bound = Pointer | np.generic | LocalSlot | Packed | None
"""A bound kernel argument: a pointer, a NumPy scalar of the argument's exact type, local memory, a value in
bytes, or (None) the null pointer."""


def launches_of(
    arguments: Sequence[Bound], size: LaunchSize
) -> Iterator[tuple[int, list[Bound], LaunchSize]]:
    """The launches of a sequence, or the only one: number, arguments and size of each.

    Args:
        arguments: all arguments of the kernel, in its order.
    """
    for n, step in enumerate(size.steps):
        taken = [arguments[place] for place in step.takes] if step.takes else list(arguments)
        place = count()
        yield n, [LocalSlot(next(place)) if isinstance(a, LocalSlot) else a for a in taken], step


class Program(Protocol):
    """A loaded binary with its entries."""

    def unload(self) -> None:
        """Unload the binary."""
        ...

    def changed_globals(self) -> list[str]:
        """Readable device variables whose value differs from the value after loading, or after they were
        last written as symbols."""
        ...

    def write_symbol(self, name: str, data: Array) -> None:
        """Fill a variable of the program, all of it, as host code would.

        Raises:
            LaunchRefused: it has none of this name, or one of another size.
        """
        ...

    def read_symbol(self, name: str) -> bytes:
        """Contents of a variable that `write_symbol` filled."""
        ...


class Watch(Protocol):
    """Hooks that run, untimed, around the timed samples."""

    def before(self, sample: int | None, launches: int) -> None:
        """Called before every sample (None: a warm-up) with its number of launches."""
        ...

    def after(self, sample: int) -> None:
        """Called after every sample, once its launches have ended."""
        ...


@dataclass(frozen=True)
class Repeats:
    """Numbers of samples and launches of a timing, and the state that it finds."""

    samples: Callable[[float], int]
    """Says how many there are, from what one will take in µs (0: not known), before any is timed."""
    launches: int
    """Launches per sample. 0: choose, so that a sample is well above the resolution of the clock."""
    stop: Callable[[Sequence[float]], bool]
    """Is asked after every sample, with all samples in µs, whether to give up."""
    known_us: float = 0.0
    """Time of a launch in µs if the same one was timed before and is long; 0: not known. If it is known, no
    launch is needed before the samples."""
    in_place: bool = False
    """Launches change what later ones read. `Watch` restores it; until then no set is launched twice. A
    sample has every set, or, where launches are long, fewer: see `launches_in_place`.
    """
    is_warm: bool = False
    """Another process has just kept the device busy, so that its clocks are up."""


class Device(Protocol):
    """An opened device. Faults raise `DeviceFault`; after that the process must end."""

    info: DeviceInfo
    apart: bool
    """Every buffer is an allocation of its own, whose bounds a sanitizer knows."""

    def allocate(self, size_bytes: int) -> Memory:
        """Device memory, contents undefined."""
        ...

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """Allocate an image with undefined contents; its bytes count row by row, without padding.

        Raises:
            LaunchRefused: the device supports no images, not this format, or not this size.
        """
        ...

    def load(self, compiled: Compiled) -> Program:
        """Load a binary.

        Raises:
            LaunchRefused: the driver does not accept it.
        """
        ...

    def launch(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Launch once and wait; of a sequence, every launch once, in order.

        Args:
            arguments: of the kernel; `launches_of` says which of them a launch of a sequence takes.

        Raises:
            LaunchRefused: the driver refused the launch; the device still works.
            DeviceFault: the launch faulted.
        """
        ...

    def time(
        self,
        program: Program,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        repeats: Repeats,
        watch: Watch,
    ) -> tuple[list[float], int]:
        """Device time of one launch, in µs, once a sample; and the launches a sample had.

        A sequence counts as one launch, and the time between its launches counts as well.
        Launches walk through `argument_sets` and begin again behind the last, from one sample to the next.
        `watch` is called, untimed, before and after every sample.
        """
        ...

    def close(self) -> None:
        """Release the device before the process ends by itself."""
        ...


@runtime_checkable
class PageGuarding(Protocol):
    """A device whose kernels run on the host's cores, in memory that may be anywhere."""

    def guarding(self, at: PagesAt) -> Device:
        """This device, with memory that is `PageGuarded`."""
        ...


class BackendModule(Protocol):
    """Functions that the module of a back end (`cuda`, `opencl`) has at top level."""

    def probe(self) -> list[DeviceInfo]:
        """The devices of this machine.

        Raises:
            Unavailable: no device, or a package or driver is missing; the message says which.
        """
        ...

    def open_device(self, index: int) -> Device:
        """Open a device in this process."""
        ...

    def compile_source(self, request: CompileRequest) -> Compiled | Rejected:
        """Compile. A faulty source or option gives a `Rejected`."""
        ...


LONG_SAMPLE_IN_PLACE_US = 20_000.0
"""Length in µs beyond which a sample of an in-place kernel gets no further launches of other sets."""


def launches_in_place(sets: int, once_us: float) -> int:
    """Launches per sample of a kernel that works in place.

    A sample has all sets, because the set restored last is still in a cache and a short sample would measure
    only that. For launches of some milliseconds the effect is negligible, and the number follows from their
    time.

    Args:
        sets: number of buffer sets.
        once_us: time of one launch, µs.
    """
    return max(1, min(sets, int(LONG_SAMPLE_IN_PLACE_US / max(once_us, 1.0))))


class LaunchRefused(Exception):
    """The driver refused a launch or a binary; the device still works."""


class DeviceFault(Exception):
    """The device faulted; this process must not use it again."""
