"""Peak rates of a device, measured once with the service's own kernels through the same ports as
candidates."""

from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.job import CacheState, Workload
from warpsmith.domain.kernel import Kernel
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled, TimingPlan, expecting_launches, launch_size, plan_workload
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.measure.ceiling_kernels import (
    BLOCK,
    FMA_CHAINS,
    FMA_STEPS,
    copy_kernel,
    empty_kernel,
    multiply_kernel,
)
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.session_ports import SessionPorts

SAMPLES = 15
ENOUGH_S = 0.5
"""Seconds of samples per ceiling kernel after which fewer than `SAMPLES` suffice."""
VECTOR_BYTES = 16
COLD_BYTES = 256 << 20
"""Bytes that a cold copy reads, if the device's memory is large and its own."""
HOST_COLD_BYTES = 16 << 20
HOT_SHARE = 8
"""Divisor of the last-level cache's size: a hot copy reads that part of it and writes as much."""
DEFAULT_CACHE_BYTES = 4 << 20
MULTIPLY_BLOCKS = 64
"""Blocks per multiprocessor."""


def ceilings_of(ports: SessionPorts) -> Ceilings | None:
    """The ceilings of the ports' device, measured once per process.

    None if the ceiling kernels do not run there.
    """
    info = ports.opener.info
    key = f"{info.uid} {info.driver}"
    if key not in _known():
        try:
            _known()[key] = _measure(ports, info)
        except (ChildDied, KernelRefused):
            return None
    return _known()[key]


@lru_cache(maxsize=1)
def _known() -> dict[str, Ceilings | None]:
    return {}


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
        copies = timer.submit(copy_kernel(info.backend), cold), timer.submit(copy_kernel(info.backend), hot)
        multiplies = timer.submit(multiply_kernel(info.backend), multiplied)
        empty = timer.submit(empty_kernel(info.backend), BLOCK)
        cold_us = timer.best_us(copies[0], CacheState.COLD)
        hot_us = timer.best_us(copies[1], CacheState.HOT)
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
