"""An AMD device through hip-python: memory, launches, and timing by graph replay. Runs in device children.

Not run on AMD hardware.
"""

from collections.abc import Sequence
from typing import Any

from warpsmith.backends.addressed_memory import Slabs
from warpsmith.backends.base import Bound, LaunchRefused, Memory, Program, launches_of
from warpsmith.backends.graph_timed_device import GraphTimedDevice
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import BufferPlan, Compiled
from warpsmith.extensions.hip.calls import must
from warpsmith.extensions.hip.graph import HipGraphTimer
from warpsmith.extensions.hip.memory import HipAddressSpace
from warpsmith.extensions.hip.program import HipProgram

_OPEN = "the device cannot be opened"


class HipDevice(GraphTimedDevice[HipProgram]):
    """Implements `backends.base.Device` in the current process, on the device's primary context."""

    apart = False
    _timer: HipGraphTimer

    def __init__(self, hip: Any, info: DeviceInfo) -> None:
        """Open the device.

        Raises:
            DeviceFault: it cannot be opened.
        """
        self.info = info
        self._hip = hip
        must(hip.hipSetDevice(info.index), _OPEN)
        # A stream that waits for the copies of the default stream, and they for it.
        (self._stream,) = must(hip.hipStreamCreateWithFlags(hip.hipStreamDefault), _OPEN)
        self._timer = HipGraphTimer(hip, self._stream)
        self._warm = False
        self._slabs = Slabs(HipAddressSpace(hip))

    def allocate(self, size_bytes: int) -> Memory:
        """See `Device.allocate`."""
        return self._slabs.allocate(size_bytes, apart=self.apart)

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """See `Device.allocate_image`."""
        raise LaunchRefused(f"{plan.name}: textures cannot be posted; use a buffer")

    def load(self, compiled: Compiled) -> Program:
        """See `Device.load`."""
        return HipProgram(self._hip, compiled)

    def close(self) -> None:
        """See `Device.close`."""
        self._timer.close()
        self._hip.hipStreamDestroy(self._stream)

    def _own(self, program: Program) -> HipProgram:
        assert isinstance(program, HipProgram)
        return program

    def _prepare(self, program: HipProgram, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Nothing: a launch of HIP allocates nothing of ours, and local memory needs no permission."""

    def _enqueue(self, program: HipProgram, arguments: Sequence[Bound], size: LaunchSize) -> None:
        for number, taken, step in launches_of(arguments, size):
            program.enqueue(number, taken, step, self._stream)

    def _finish(self) -> None:
        must(self._hip.hipStreamSynchronize(self._stream), "the kernel faulted")
