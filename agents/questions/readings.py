"""Measurements of a kernel in sentences, each with its number and what follows from it. Pure."""

from collections.abc import Sequence

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.tuning.analysis.search_facts import Facts, KernelFacts, WorkloadFacts

NEAR_LAUNCH = 1.3
"""Time, as a multiple of an empty kernel's, below which the launch overhead dominates."""
AT_ROOFLINE = 0.8
LOW_OCCUPANCY = 0.25
FEW_WAVES = 4


def readings(job: Job, known: Facts, device: DeviceInfo) -> tuple[str, ...]:
    """Sentences on the best kernel so far: its heaviest workload, and its smallest if that is another."""
    kernel = known.best or known.baseline
    if not kernel.workloads:
        return ()
    weights = {w.key: w.weight for w in job.workloads}
    heaviest = max(kernel.workloads, key=lambda w: weights.get(w.workload, 1) * w.time_us)
    smallest = min(kernel.workloads, key=lambda w: w.bytes)
    made = [f"{heaviest.workload} (the heaviest): {_joined(known, kernel, heaviest, device)}"]
    if smallest is not heaviest:
        made.append(f"{smallest.workload} (the smallest): {_joined(known, kernel, smallest, device)}")
    if kernel.spill_bytes:
        made.append(f"{kernel.spill_bytes} bytes of registers spill: fewer values alive in a thread")
    return tuple(made)


def of_blocks(found: WorkloadFacts, device: DeviceInfo) -> str:
    """Idle multiprocessors and the remedy, in words; empty if there are enough blocks."""
    places = device.limits.multiprocessors
    unit = "cores" if device.shares_host else "multiprocessors"
    if 0 < found.blocks < places:
        idle = places - found.blocks
        return (
            f"{found.blocks} blocks on {places} {unit}: {idle} of them idle; split rows or sums over blocks"
        )
    waves = found.blocks / places
    if 1 < waves < FEW_WAVES and found.blocks % places:
        return (
            f"{found.blocks} blocks on {places} {unit}: {waves:.2f} for each, some do one more than others; "
            "more and smaller blocks, or a number that divides evenly"
        )
    return ""


def _joined(known: Facts, kernel: KernelFacts, found: WorkloadFacts, device: DeviceInfo) -> str:
    parts = [f"{found.time_us:.4g} µs", *_of_time(known, found), of_blocks(found, device)]
    parts.append(_of_occupancy(kernel, found, device))
    return "; ".join(filter(None, parts))


def _of_time(known: Facts, found: WorkloadFacts) -> Sequence[str]:
    if known.launch_us is not None and found.time_us <= NEAR_LAUNCH * known.launch_us:
        return [f"an empty kernel takes {known.launch_us:.3g} µs: nothing inside of the kernel gains much"]
    if found.roofline_share is None or found.floor_us is None:
        return []
    at = f"{found.roofline_share:.0%} of the floor of {found.floor_us:.3g} µs"
    if found.floor_bound == "launch":
        return [f"{at}, which is a launch's: shorten the chain of dependent loads, barriers and reductions"]
    if found.roofline_share >= AT_ROOFLINE:
        less = "fewer bytes" if found.floor_bound == "bytes" else "fewer operations"
        return [f"{at}: only {less} would gain more than {1 / found.roofline_share - 1:.0%}"]
    if found.floor_bound == "flops":
        return [f"{at} by operations: cheaper functions, fewer operations, or matrix units"]
    rate = f"{found.bytes_per_s / 1e9:.0f} GB/s"
    return [f"{at} by bytes, {rate}: more bytes in flight, in wider accesses, or fewer passes over them"]


def _of_occupancy(kernel: KernelFacts, found: WorkloadFacts, device: DeviceInfo) -> str:
    if found.occupancy is None or found.occupancy >= LOW_OCCUPANCY or device.shares_host:
        return ""
    taken = f"{kernel.registers} registers a thread" if kernel.registers else "registers"
    shared = found.shared_bytes + (kernel.static_shared_bytes or 0)
    share = f"{found.occupancy:.0%} of the warps"
    return f"{taken} and {shared} bytes of shared memory a block leave {share} resident: use less of them"
