"""What a device can do at most, measured once by our own kernels through the same ports as candidates."""

from functools import lru_cache

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.job import CacheState, Workload
from warpsmith.domain.kernel import Kernel
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import TimingPlan, launch_size, plan_workload
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
VECTOR_BYTES = 16
COLD_BYTES = 256 << 20
"""What a cold copy reads, where the device's memory is large and its own."""
HOST_COLD_BYTES = 16 << 20
HOT_SHARE = 8
"""A hot copy reads this part of the last cache, and writes as much."""
DEFAULT_CACHE_BYTES = 4 << 20
MULTIPLY_BLOCKS = 64
"""Blocks for each multiprocessor."""


def ceilings_of(ports: SessionPorts) -> Ceilings | None:
    """The ceilings of the ports' device, measured the first time in this process.

    None where our kernels do not run there, so that nothing can be said.
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
        cold_us = timer.best_us(copy_kernel(info.backend), cold, CacheState.COLD)
        hot_us = timer.best_us(copy_kernel(info.backend), hot, CacheState.HOT)
        multiply_us = timer.best_us(multiply_kernel(info.backend), multiplied, CacheState.HOT)
        launch_us = timer.best_us(empty_kernel(info.backend), BLOCK, CacheState.HOT)
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


class _Timer:
    def __init__(self, ports: SessionPorts, device: DevicePort) -> None:
        self._ports = ports
        self._device = device

    def best_us(self, kernel: Kernel, n: int, cache: CacheState) -> float | None:
        """The shortest sample; None where the kernel does not compile."""
        info = self._ports.opener.info
        configured = ConfiguredKernel(kernel=kernel)
        compiled = self._ports.compiler.submit(configured, info).result()
        if isinstance(compiled, Rejected):
            return None
        workload = Workload(dimensions={"n": n})
        self._device.prepare(plan_workload(kernel, workload, {}, seed=1))
        size = launch_size(configured, workload, info)
        handle = self._device.load(compiled)
        timed = self._device.time(handle, workload.key, size, TimingPlan(cache, SAMPLES))
        self._device.unload(handle)
        self._device.release(workload.key)
        return min(timed.samples_us)
