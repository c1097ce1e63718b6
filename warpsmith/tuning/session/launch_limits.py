"""Refuses launches beyond a device's limits; nothing is launched."""

from warpsmith.domain.device import DeviceInfo, DeviceLimits
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import LaunchSize, launch_size
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel


def size_within_limits(
    kernel: ConfiguredKernel, workload: Workload, device: DeviceInfo
) -> LaunchSize | Rejected:
    """The launch of a configuration on a workload, or why the device cannot take it.

    Raises:
        ExpressionError: the launch cannot be evaluated.
    """
    size = launch_size(kernel, workload, device)
    refusal = beyond_limits(size, device.limits)
    if refusal:
        return Rejected(stage=Stage.LAUNCH, reason=refusal[:2000], workload=workload.key)
    return size


def beyond_limits(size: LaunchSize, limits: DeviceLimits) -> str:
    """The limit that a launch, or one of a sequence, breaks, in words; empty if none is broken."""
    for n, step in enumerate(size.steps):
        words = _beyond(step, limits)
        if words:
            return f"launch {n}: {words}" if size.then else words
    if min(size.scratch_bytes, default=1) < 1:
        return f"a scratch argument has {min(size.scratch_bytes)} B; it needs at least one element"
    if limits.total_memory_bytes and sum(size.scratch_bytes) > limits.total_memory_bytes:
        return f"{sum(size.scratch_bytes)} B of scratch; the device has {limits.total_memory_bytes}"
    return ""


def _beyond(size: LaunchSize, limits: DeviceLimits) -> str:
    threads = size.block[0] * size.block[1] * size.block[2]
    block_limits = (limits.max_block_x, limits.max_block_y, limits.max_block_z)
    grid_limits = (limits.max_grid_x, limits.max_grid_y, limits.max_grid_z)
    for axis, (blocks, most) in enumerate(zip(size.grid, grid_limits, strict=True)):
        if not 1 <= blocks <= most:
            return f"grid {'xyz'[axis]} is {blocks}; the device takes 1 to {most}"
    for axis, (extent, most) in enumerate(zip(size.block, block_limits, strict=True)):
        if not 1 <= extent <= most:
            return f"block {'xyz'[axis]} is {extent}; the device takes 1 to {most}"
    if any(blocks % extent for blocks, extent in zip(size.grid, size.cluster, strict=True)):
        return f"the grid {size.grid} is no multiple of the cluster {size.cluster}"
    if threads > limits.max_threads_per_block:
        return f"a block has {threads} threads; the device takes {limits.max_threads_per_block}"
    if min(size.local_bytes, default=1) < 1:
        return f"a local argument has {min(size.local_bytes)} B; it needs at least one element"
    if size.shared_bytes < 0 or size.dynamic_bytes > limits.max_shared_per_block:
        return f"{size.dynamic_bytes} B of shared memory; a block may have {limits.max_shared_per_block}"
    return ""
