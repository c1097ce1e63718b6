"""Times of single calls from Python, the host included: what two events around a call report.

The protocol is that of Astra's test scripts (arXiv 2509.07506): calls to warm up, then timed ones, of each of
which two events are read once it has ended. The kernels of a comparison take turns in blocks, on the same
buffers. Everything that runs a kernel is in a process of its own, which a fault ends.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

from warpsmith.backends.base import Bound, Device, DeviceFault, LaunchRefused, Program
from warpsmith.backends.cuda import backend as cuda
from warpsmith.backends.cuda.device import CudaDevice
from warpsmith.backends.cuda.program import CudaProgram
from warpsmith.backends.registry import backend_module
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.measure.protocol import winner_blocks
from warpsmith.sandbox.memory.buffers import FIRST, WorkloadBuffers

WARM_UP = 20
TIMED = 100
PAIRS = 6
"""Blocks of each kernel; a block has `WARM_UP` and `TIMED` calls."""
CLOCKS_UP_S = 0.3
"""Seconds of calls before the first block: an idle device clocks low."""
PATIENCE_S = 90.0
"""Longest wait for the calls of one workload, and for the process to start."""
STOP_S = 10.0

Call = Callable[[Program, Sequence[Bound], LaunchSize], float]
Blocks = Mapping[str, list[list[float]]]
"""Times of the timed calls in µs, by side and block."""


@dataclass(frozen=True)
class Launched:
    """A kernel and its launch on one workload."""

    compiled: Compiled
    size: LaunchSize


@dataclass(frozen=True)
class Calls:
    """The kernels to call on one workload: `A` the user's, `B` what serves in its place, if anything does."""

    plan: WorkloadPlan
    sides: Mapping[str, Launched]


class CallTimer(CudaDevice):
    """A CUDA device that times single calls between two events."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self._before, self._after = self._driver.Event(), self._driver.Event()

    def call_us(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> float:
        """Time of one call in µs, from an event that an idle device reaches at once to one behind the kernel.

        The host's work for the launch is between them. The function must have been launched before.
        """
        assert isinstance(program, CudaProgram)
        # What restores in-place data would hide the host's work behind its own.
        self._driver.Context.synchronize()
        self._before.record(self._stream)
        self._enqueue(program, arguments, size)
        self._after.record(self._stream)
        self._after.synchronize()
        return float(self._before.time_till(self._after)) * 1000.0


def call_blocks(info: DeviceInfo, workloads: Sequence[Calls]) -> list[Blocks | str]:
    """Blocks of calls on each workload, or why there are none, from a process of its own."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, info, workloads), daemon=True)
    process.start()
    sender.close()
    found: list[Blocks | str] = []
    end = "gave no answer in time"
    try:
        while len(found) < len(workloads) and receiver.poll(PATIENCE_S):
            found.append(receiver.recv())
    except EOFError:
        end = "ended before that"
    finally:
        process.join(STOP_S if len(found) == len(workloads) else 0.0)
        process.kill()
        process.join()
        receiver.close()
    return found + [f"the process of the calls {end}"] * (len(workloads) - len(found))


def _work(sender: Connection, info: DeviceInfo, workloads: Sequence[Calls]) -> None:
    device, call = _opened(info)
    for calls in workloads:
        try:
            sender.send(blocks_of(device, call, calls))
        except LaunchRefused as exc:
            sender.send(f"refused: {exc}"[:300])
        except DeviceFault as exc:
            # The process must not use the device again; the workloads after this one get no answer.
            sender.send(f"faulted: {exc}"[:300])
            return
    device.close()


def _opened(info: DeviceInfo) -> tuple[Device, Call]:
    if info.backend is Backend.CUDA:
        cuda.import_device()
        timer = CallTimer(info)
        return timer, timer.call_us
    device = backend_module(info.backend).open_device(info.index)

    def call_us(program: Program, arguments: Sequence[Bound], size: LaunchSize) -> float:
        began = time.perf_counter()
        device.launch(program, arguments, size)
        return (time.perf_counter() - began) * 1e6

    return device, call_us


def blocks_of(device: Device, call: Call, calls: Calls) -> Blocks:
    """Blocks of timed calls in balanced order, on the same buffers for both sides.

    Raises:
        LaunchRefused: the driver refused a launch.
        DeviceFault: a launch faulted.
    """
    buffers = WorkloadBuffers(device, calls.plan)
    programs = {side: device.load(kernel.compiled) for side, kernel in calls.sides.items()}
    samples: dict[str, list[list[float]]] = {side: [] for side in programs}
    try:
        until = time.monotonic() + CLOCKS_UP_S
        while time.monotonic() < until:
            for side, program in programs.items():
                _block(device, call, buffers, program, calls.sides[side].size)
        for side in winner_blocks(PAIRS, seed=0):
            if side in programs:
                block = _block(device, call, buffers, programs[side], calls.sides[side].size)
                samples[side].append(block)
    finally:
        buffers.free()
        for program in programs.values():
            program.unload()
    return samples


def _block(
    device: Device, call: Call, buffers: WorkloadBuffers, program: Program, size: LaunchSize
) -> list[float]:
    """Times of the timed calls of a block, µs. In-place data are restored before each, outside of it."""
    arguments = buffers.bound(FIRST, buffers.scratch_of(size))
    buffers.restore()
    buffers.symbols_of(program).write()
    device.launch(program, arguments, size)
    times = []
    for _ in range(WARM_UP + TIMED):
        buffers.restore()
        times.append(call(program, arguments, size))
    return times[WARM_UP:]
