"""OpenCL through PyOpenCL: GPUs, and CPUs through PoCL. Runs inside children only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from warpsmith.backends.base import (
    Array,
    Bound,
    CompileRequest,
    Device,
    DeviceFault,
    LaunchRefused,
    LocalSlot,
    Memory,
    Packed,
    Program,
    Repeats,
    Watch,
    launches_in_place,
    launches_of,
    pieces_of,
)
from warpsmith.backends.opencl.compile import compile_opencl, start_compiler
from warpsmith.backends.opencl.guard_pages import GuardedPages
from warpsmith.backends.opencl.image import ImageMemory
from warpsmith.backends.opencl.platforms import devices, opencl
from warpsmith.backends.opencl.pocl_cpu_name import cpu_name
from warpsmith.backends.opencl.pocl_watch import allow_variables, refuse_with, watch
from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import PagesAt
from warpsmith.domain.jobs.plan import BufferPlan, Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable

SAMPLE_US = 400.0
"""Length of a sample in µs, filled with launches, so that clock resolution and queue overhead are
negligible."""
MAX_LAUNCHES = 64
MAX_GRID = 2**31 - 1
_REFUSED_CODES = {"INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE", "INVALID_WORK_DIMENSION"}
_REFUSED_CODES |= {"INVALID_GLOBAL_WORK_SIZE", "INVALID_KERNEL_ARGS", "INVALID_BINARY", "OUT_OF_RESOURCES"}


def import_device() -> None:
    """Import what `open_device` needs, before the child gives up the right to read files."""
    opencl()
    cpu_name()


import_compiler = start_compiler
refuse_objects_with = refuse_with


def probe() -> list[DeviceInfo]:
    """See `BackendModule.probe`."""
    found = [_info(index, device) for index, device in enumerate(devices())]
    if not found:
        raise Unavailable("opencl: a platform, but no CPU or GPU device")
    return found


def compile_source(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    return compile_opencl(request)


def open_device(index: int) -> "OpenClDevice":
    """See `BackendModule.open_device`."""
    device = devices()[index]
    watch(device)
    return OpenClDevice(_info(index, device), device)


class _ClMemory:
    address = 0

    def __init__(self, device: "OpenClDevice", size_bytes: int, host: Array | None = None) -> None:
        self.size_bytes = size_bytes
        self._device = device
        flags = device.cl.mem_flags
        where = flags.READ_WRITE | (0 if host is None else flags.USE_HOST_PTR)
        self.buffer = device.cl.Buffer(device.context, where, max(1, size_bytes), host)

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        host = np.ascontiguousarray(data).view(np.uint8)
        self._device.copy(self.buffer, host, dst_offset=offset_bytes)

    def read(self, offset_bytes: int, size_bytes: int) -> memoryview:
        host = np.empty(size_bytes, np.uint8)
        self._device.copy(host, self.buffer, src_offset=offset_bytes)
        return host.data

    def copy_from(self, other: Memory, size_bytes: int, offset_bytes: int = 0) -> None:
        assert isinstance(other, _ClMemory)
        places = {"src_offset": offset_bytes, "dst_offset": offset_bytes}
        self._device.copy(self.buffer, other.buffer, byte_count=size_bytes, **places)

    def gather(self, source: Memory, begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        assert isinstance(source, _ClMemory)
        for at, begin, size in pieces_of(begins, piece_bytes, to):
            places = {"src_offset": begin, "dst_offset": at}
            self._device.copy(self.buffer, source.buffer, byte_count=size, **places)

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        cl, queue = self._device.cl, self._device.queue
        data = np.frombuffer(pattern, np.uint8)
        cl.enqueue_fill_buffer(queue, self.buffer, data, offset_bytes, size_bytes)
        queue.finish()

    def free(self) -> None:
        self._device.forget(self.buffer)
        self.buffer.release()


class _GuardedMemory(_ClMemory):
    """Implements `backends.base.PageGuarded`.

    Raises:
        LaunchRefused: the driver keeps the contents elsewhere.
    """

    def __init__(self, device: "OpenClDevice", size_bytes: int, at: PagesAt) -> None:
        self._pages = GuardedPages(max(1, size_bytes), at, device.align)
        super().__init__(device, size_bytes, self._pages.bytes)
        self.seal = self._pages.seal
        mark = ~self._pages.bytes[:1]
        self.write(mark)
        if self._pages.bytes[0] != mark[0]:
            raise LaunchRefused("the driver keeps buffers elsewhere than it was told")

    @property
    def reached(self) -> Sequence[str]:
        return self._pages.reached

    @property
    def was_written(self) -> bool:
        return self._pages.was_written

    def free(self) -> None:
        super().free()
        self._pages.free()


class _ClProgram:
    def __init__(self, kernels: Sequence[Any], variables: bool) -> None:
        self.kernels: Sequence[Any] = kernels
        self.variables = variables
        """The program may have variables that outlive launches."""

    def unload(self) -> None:
        self.kernels = ()

    def changed_globals(self) -> list[str]:
        return []  # OpenCL has no call that reads program-scope variables

    def write_symbol(self, name: str, data: Array) -> None:
        raise LaunchRefused(f"{name}: OpenCL cannot fill a variable of the program; make it an argument")

    def read_symbol(self, name: str) -> bytes:
        raise LaunchRefused(f"{name}: OpenCL cannot read a variable of the program")


class OpenClDevice:
    """Implements `backends.base.Device`.

    The kernel gets an aligned sub-buffer that begins after the guard zone.
    """

    apart = True

    def __init__(self, info: DeviceInfo, device: Any) -> None:
        self.cl = opencl()
        self.info = info
        self._device = device
        self.context = self.cl.Context([device])
        self.queue = self.cl.CommandQueue(
            self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE
        )
        self._views: dict[tuple[int, int], Any] = {}
        self._pages_at: PagesAt | None = None
        self.align = device.mem_base_addr_align // 8
        """Alignment of buffers on which kernels may rely, bytes."""

    def guarding(self, at: PagesAt) -> Device:
        """See `PageGuarding.guarding`."""
        if not self.info.shares_host:
            raise LaunchRefused("the device has a memory of its own")
        made = copy(self)
        made._pages_at = at
        return made

    def copy(self, destination: Any, source: Any, **options: Any) -> None:
        """A blocking copy in any direction."""
        try:
            self.cl.enqueue_copy(self.queue, destination, source, **options)
            self.queue.finish()
        except self.cl.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc

    def forget(self, buffer: Any) -> None:
        """Release the sub-buffers of a buffer, which would keep its memory alive."""
        for key in [key for key in self._views if key[0] == buffer.int_ptr]:
            self._views.pop(key).release()

    def close(self) -> None:
        """See `Device.close`."""
        self.queue.finish()

    def allocate(self, size_bytes: int) -> Memory:
        """See `Device.allocate`."""
        try:
            at = self._pages_at
            return _ClMemory(self, size_bytes) if at is None else _GuardedMemory(self, size_bytes, at)
        except self.cl.Error as exc:
            raise DeviceFault(f"{size_bytes} bytes cannot be allocated: {exc}") from exc

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """See `Device.allocate_image`."""
        return ImageMemory(self.context, self.copy, plan)

    def load(self, compiled: Compiled) -> Program:
        """See `Device.load`."""
        try:
            program = self.cl.Program(self.context, [self._device], [compiled.binary]).build()
            kernels = [self.cl.Kernel(program, entry) for entry in compiled.entries]
            return _ClProgram(kernels, bool(compiled.globals))
        except self.cl.Error as exc:
            raise LaunchRefused(f"the driver refused the binary: {str(exc)[:500]}") from exc

    def launch(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """See `Device.launch`."""
        assert isinstance(program, _ClProgram)
        self._enqueue_all(program, arguments, size)
        self._finish()

    def time(
        self,
        program: Program,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        repeats: Repeats,
        watch: Watch,
    ) -> tuple[list[float], int]:
        """See `Device.time`: profiling events, summed over the launches of a sample; of a sequence, from
        the start of its first launch to the end of its last."""
        assert isinstance(program, _ClProgram)
        first = repeats.known_us
        if not first:
            watch.before(None, 1)
            # The last set: the first timed launch must not find the result for its own inputs.
            first = self._sample(program, argument_sets[-1:], size)
        launches = repeats.launches
        if repeats.in_place:
            launches = launches_in_place(len(argument_sets), first)
        elif not launches:
            launches = int(min(MAX_LAUNCHES, max(1.0, SAMPLE_US / first)))
        times: list[float] = []
        for sample in range(repeats.samples(launches * first)):
            watch.before(sample, launches)
            start = sample * launches
            turn = [argument_sets[(start + i) % len(argument_sets)] for i in range(launches)]
            times.append(self._sample(program, turn, size))
            watch.after(sample)
            if repeats.stop(times):
                break
        return times, launches

    def _sample(
        self, program: _ClProgram, argument_sets: Sequence[Sequence[Bound]], size: LaunchSize
    ) -> float:
        """Mean device time of one launch over the given sets, µs."""
        with self._held_back(size) as wait_for:
            events = [self._enqueue_all(program, a, size, wait_for) for a in argument_sets]
        self._finish()
        total_ns: int = sum(last.profile.end - first.profile.start for first, last in events)
        return max(total_ns, 1) / 1000.0 / len(events)

    @contextmanager
    def _held_back(self, size: LaunchSize) -> Iterator[list[Any]]:
        """Events that hold back what is enqueued until the context ends; none for a lone launch.

        The time between the launches of a sequence counts, and that the host takes to enqueue them must not.
        """
        if not size.then:
            yield []
            return
        gate = self.cl.UserEvent(self.context)
        try:
            yield [gate]
        finally:
            gate.set_status(self.cl.command_execution_status.COMPLETE)

    def _enqueue_all(
        self, program: _ClProgram, arguments: Sequence[Bound], size: LaunchSize, wait_for: Sequence[Any] = ()
    ) -> tuple[Any, Any]:
        """Enqueue a launch, or a sequence; returns the events of its first and of its last launch."""
        allow_variables(program.variables)
        events = []
        for n, taken, step in launches_of(arguments, size):
            kernel = program.kernels[n]
            self._bind(kernel, taken, step)
            events.append(self._enqueue(kernel, step, wait_for))
        return events[0], events[-1]

    def _bind(self, kernel: Any, arguments: Sequence[Bound], size: LaunchSize) -> None:
        for index, argument in enumerate(arguments):
            try:
                kernel.set_arg(index, self._value(argument, size))
            except self.cl.Error as exc:
                raise LaunchRefused(f"argument {index} was refused: {exc}") from exc

    def _value(self, argument: Bound, size: LaunchSize) -> Any:
        if isinstance(argument, LocalSlot):
            return self.cl.LocalMemory(size.local_bytes[argument.position])
        if isinstance(argument, Packed):
            return argument.data
        return self._view(argument) if isinstance(argument, tuple) else argument

    def _view(self, pointer: tuple[Memory, int]) -> Any:
        memory, offset = pointer
        if isinstance(memory, ImageMemory):
            return memory.image
        assert isinstance(memory, _ClMemory)
        key = (memory.buffer.int_ptr, offset)
        if key not in self._views:
            self._views[key] = memory.buffer.get_sub_region(offset, memory.size_bytes - offset)
        return self._views[key]

    def _enqueue(self, kernel: Any, size: LaunchSize, wait_for: Sequence[Any]) -> Any:
        cl = self.cl
        if size.shared_bytes:
            raise LaunchRefused(
                "OpenCL has no shared_bytes: declare a __local array, or an argument with the role local"
            )
        total = tuple(g * b for g, b in zip(size.grid, size.block, strict=True))
        try:
            return cl.enqueue_nd_range_kernel(self.queue, kernel, total, size.block, wait_for=wait_for)
        except cl.Error as exc:
            if any(code in str(exc) for code in _REFUSED_CODES):
                raise LaunchRefused(str(exc)[:500]) from exc
            raise DeviceFault(f"the launch failed: {exc}") from exc

    def _finish(self) -> None:
        try:
            self.queue.finish()
        except self.cl.Error as exc:
            raise DeviceFault(f"the kernel faulted: {exc}") from exc


def _info(index: int, device: Any) -> DeviceInfo:
    cl = opencl()
    items = device.max_work_item_sizes
    platform = device.platform.name.strip()
    return DeviceInfo(
        backend=Backend.OPENCL,
        index=index,
        uid=f"{platform}/{device.name.strip()}/{index}",
        name=device.name.strip(),
        driver=f"{platform} {device.driver_version.strip()}",
        architecture=device.opencl_c_version.strip(),
        compiler=f"{device.platform.version.strip()}, {device.version.strip()}",
        shares_host=bool(device.type & cl.device_type.CPU),
        limits=DeviceLimits(
            max_threads_per_block=device.max_work_group_size,
            max_block_x=items[0],
            max_block_y=items[1],
            max_block_z=items[2],
            max_grid_x=MAX_GRID,
            max_grid_y=MAX_GRID,
            max_grid_z=MAX_GRID,
            max_shared_per_block=device.local_mem_size,
            multiprocessors=device.max_compute_units,
            warp_size=_warp_size(device),
            l2_bytes=device.global_mem_cache_size,
            total_memory_bytes=device.global_mem_size,
        ),
    )


def _warp_size(device: Any) -> int:
    if "cl_nv_device_attribute_query" in device.extensions:
        return int(device.warp_size_nv)
    return 64 if device.type & opencl().device_type.GPU else 1
