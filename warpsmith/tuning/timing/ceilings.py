"""Peak rates of a device, measured with the service's own kernels through the same ports as candidates."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import ClassVar

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Workload
from warpsmith.domain.jobs.launch_size import expecting_launches, launch_size
from warpsmith.domain.jobs.plan import Compiled, TimingPlan, plan_workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.measure.ceiling_kernels import (
    BLOCK,
    FMA_CHAINS,
    FMA_STEPS,
    copy_kernel,
    empty_kernel,
    multiply_kernel,
)
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.ports import CeilingsPort, DevicePort

SAMPLES = 15
ENOUGH_S = 0.5
"""Seconds of samples per ceiling kernel after which fewer than `SAMPLES` suffice."""
MEASURING_S = 1.5
"""Usual seconds of a measurement, compilation included."""
VECTOR_BYTES = 16
COLD_BYTES = 256 << 20
"""Bytes that a cold copy reads, if the device's memory is large and its own."""
HOST_COLD_BYTES = 16 << 20
HOT_SHARE = 8
"""Divisor of the last-level cache's size: a hot copy reads that part of it and writes as much."""
DEFAULT_CACHE_BYTES = 4 << 20
MULTIPLY_BLOCKS = 64
"""Blocks per multiprocessor."""


class ProcessCeilings:
    """Implements `CeilingsPort` for as long as this process lives."""

    _of_devices: ClassVar[dict[str, Ceilings]] = {}

    def __init__(self, device: DeviceInfo) -> None:
        self._key = f"{device.uid} {device.driver}"

    def known(self) -> Ceilings | None:
        """See `CeilingsPort.known`."""
        return self._of_devices.get(self._key)

    def keep(self, ceilings: Ceilings) -> None:
        """See `CeilingsPort.keep`."""
        self._of_devices[self._key] = ceilings


def ceilings_s(ports: SessionPorts) -> float:
    """Seconds that `ceilings_of` is expected to take."""
    return MEASURING_S if _store(ports).known() is None else 0.0


def ceilings_of(ports: SessionPorts, hold: Callable[[Ceilings], bool] | None = None) -> Ceilings | None:
    """The ceilings of the ports' device, measured if none are kept; None if the ceiling kernels do not run
    there.

    Args:
        hold: False for ceilings that something measured exceeds: something else used the device while they
            were measured. They are then measured again, and the higher ones are kept.
    """
    kept = _store(ports)
    known = kept.known()
    if known is not None and (hold is None or hold(known)):
        return known
    try:
        found = _measure(ports, ports.opener.info)
    except (ChildDied, KernelRefused):
        return known
    if found is None:
        return known
    if known is not None:
        found = _higher(found, known)
    kept.keep(found)
    return found


def _store(ports: SessionPorts) -> CeilingsPort:
    return ports.ceilings or ProcessCeilings(ports.opener.info)


def _higher(one: Ceilings, other: Ceilings) -> Ceilings:
    return Ceilings(
        cold_bytes_per_s=max(one.cold_bytes_per_s, other.cold_bytes_per_s),
        hot_bytes_per_s=max(one.hot_bytes_per_s, other.hot_bytes_per_s),
        flops_per_s=max(one.flops_per_s, other.flops_per_s),
        launch_us=min(one.launch_us, other.launch_us),
    )


def _measure(ports: SessionPorts, info: DeviceInfo) -> Ceilings | None:
    cache = info.limits.l2_bytes or DEFAULT_CACHE_BYTES
    most = HOST_COLD_BYTES if info.shares_host else COLD_BYTES
    cold = min(most, (info.limits.total_memory_bytes or most) // 64) // VECTOR_BYTES
    hot = max(BLOCK, cache // HOT_SHARE // VECTOR_BYTES)
    multiplied = info.limits.multiprocessors * MULTIPLY_BLOCKS * BLOCK
    operations = 2 * FMA_CHAINS * FMA_STEPS * multiplied
    device = ports.opener.open()
    try:
        timer = _Timer(ports, device)
        # All are submitted before the first is timed, so that they compile concurrently.
        copy = timer.submit(copy_kernel(info.backend), cold)
        multiplies = timer.submit(multiply_kernel(info.backend), multiplied)
        empty = timer.submit(empty_kernel(info.backend), BLOCK)
        cold_us = timer.best_us(copy, CacheState.COLD)
        hot_us = timer.best_us(replace(copy, workload=Workload(dimensions={"n": hot})), CacheState.HOT)
        multiply_us = timer.best_us(multiplies, CacheState.HOT)
        launch_us = timer.best_us(empty, CacheState.HOT)
    finally:
        device.close()
    if cold_us is None or hot_us is None or multiply_us is None or launch_us is None:
        return None
    return Ceilings(
        cold_bytes_per_s=2 * VECTOR_BYTES * cold / cold_us * 1e6,
        hot_bytes_per_s=2 * VECTOR_BYTES * hot / hot_us * 1e6,
        flops_per_s=operations / multiply_us * 1e6,
        launch_us=launch_us,
    )


@dataclass(frozen=True)
class _Submitted:
    """A ceiling kernel that is being compiled."""

    kernel: ConfiguredKernel
    workload: Workload
    compiled: "Future[Compiled | Rejected]"


class _Timer:
    def __init__(self, ports: SessionPorts, device: DevicePort) -> None:
        self._ports = ports
        self._device = device

    def submit(self, kernel: Kernel, n: int) -> _Submitted:
        """Start compiling a kernel for n elements."""
        info = self._ports.opener.info
        workload = Workload(dimensions={"n": n})
        expecting = expecting_launches(ConfiguredKernel(kernel=kernel), [workload], info)
        return _Submitted(expecting, workload, self._ports.compiler.submit(expecting, info))

    def best_us(self, submitted: _Submitted, cache: CacheState) -> float | None:
        """The shortest sample, in microseconds; None if the kernel does not compile."""
        compiled, workload = submitted.compiled.result(), submitted.workload
        if isinstance(compiled, Rejected):
            return None
        plan = plan_workload(submitted.kernel.kernel, workload, {}, seed=1)
        self._device.prepare(plan)
        size = launch_size(submitted.kernel, workload, self._ports.opener.info)
        handle = self._device.load(compiled)
        timed = self._device.time(handle, plan.key, size, TimingPlan(cache, SAMPLES, enough_s=ENOUGH_S))
        self._device.unload(handle)
        self._device.release(plan.key)
        return min(timed.samples.samples_us)
