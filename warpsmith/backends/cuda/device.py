"""A CUDA device through PyCUDA: memory, launches, and timing by graph replay. Runs in device children."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from warpsmith.backends.addressed_memory import Slabs
from warpsmith.backends.base import Bound, DeviceFault, LaunchRefused, Memory, Program, launches_of
from warpsmith.backends.cuda.extended_launch import DriverRefusal, ExtendedLaunch
from warpsmith.backends.cuda.graph import GraphTimer
from warpsmith.backends.cuda.memory import CudaAddressSpace
from warpsmith.backends.cuda.program import CudaFunction, CudaProgram
from warpsmith.backends.cuda.variants import CudaVariants
from warpsmith.backends.graph_timed_device import GraphTimedDevice
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import BufferPlan, Compiled
from warpsmith.domain.templates.variant_binaries import is_joined, split

DEFAULT_SHARED_BYTES = 48 * 1024
Loaded = CudaProgram | CudaVariants
_REFUSED = ("invalid", "too large", "out of resources", "no kernel image", "not supported", "not found")


class CudaDevice(GraphTimedDevice[CudaProgram | CudaVariants]):
    """Implements `backends.base.Device` in the current process, with a context of its own."""

    apart = False
    _timer: GraphTimer

    def __init__(self, info: DeviceInfo) -> None:
        from pycuda import driver

        self.info = info
        self._driver = driver
        self._device = driver.Device(info.index)
        self._context = self._device.make_context()
        self._stream = driver.Stream()
        self._timer = GraphTimer(driver, self._stream)
        self._warm = False
        self._slabs = Slabs(CudaAddressSpace(driver))

    def allocate(self, size_bytes: int) -> Memory:
        """See `Device.allocate`."""
        return self._slabs.allocate(size_bytes, apart=self.apart)

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """See `Device.allocate_image`."""
        raise LaunchRefused(f"{plan.name}: textures cannot be posted; use a buffer")

    def load(self, compiled: Compiled) -> Program:
        """See `Device.load`."""
        try:
            if is_joined(compiled.binary):
                return CudaVariants(self._driver, split(compiled.binary))
            module = self._driver.module_from_buffer(compiled.binary)
            functions = [CudaFunction(module.get_function(entry)) for entry in compiled.entries]
            return CudaProgram(self._driver, module, functions, compiled.globals, compiled.binary)
        except (self._driver.Error, ValueError) as exc:
            raise self._error(exc, "the binary was refused") from exc

    def close(self) -> None:
        """See `Device.close`."""
        self._context.pop()

    def _own(self, program: Program) -> Loaded:
        assert isinstance(program, CudaProgram | CudaVariants)
        return program

    def _prepare(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Do what cannot be done within a capture: allocate scratch, and find the handle of a function whose
        launch has attributes."""
        if not isinstance(program, CudaVariants) and not any(step.has_attributes for step in size.steps):
            return
        for n, every, one in launches_of(arguments, size):
            function, taken, step = program.launch_of(n, every, one)
            if not step.has_attributes or function.extended is not None:
                continue
            launch = partial(
                self._enqueue_one, function, taken, replace(step, cluster=(1, 1, 1), cooperative=False)
            )
            function.extended = ExtendedLaunch(self._timer, self._timer.function_of(launch))

    def _enqueue(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        for n, taken, step in launches_of(arguments, size):
            self._enqueue_one(*program.launch_of(n, taken, step))

    def _enqueue_one(self, function: CudaFunction, arguments: Sequence[Bound], size: LaunchSize) -> None:
        try:
            if size.shared_bytes > max(DEFAULT_SHARED_BYTES, function.shared_bytes):
                attribute = self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                function.function.set_attribute(attribute, size.shared_bytes)
                function.shared_bytes = size.shared_bytes
            if size.has_attributes and function.extended is not None:
                function.extended.enqueue(size, arguments)
                return
            parameters = function.parameters(arguments)
            function.function.prepared_async_call(
                size.grid, size.block, self._stream, parameters, shared_size=size.shared_bytes
            )
        except (self._driver.Error, DriverRefusal) as exc:
            raise self._error(exc, "the launch was refused") from exc

    def _finish(self) -> None:
        try:
            self._stream.synchronize()
        except self._driver.Error as exc:
            raise DeviceFault(f"the kernel faulted: {exc}") from exc

    def _error(self, exc: Exception, words: str) -> Exception:
        text = str(exc)
        words_of_it = text.lower().replace("_", " ")
        if any(word in words_of_it for word in _REFUSED) and "address" not in words_of_it:
            return LaunchRefused(f"{words}: {text[:500]}")
        return DeviceFault(f"{words}: {text[:500]}")
