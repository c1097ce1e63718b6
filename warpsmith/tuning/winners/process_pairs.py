"""Blocks of a winner and of the user's kernel over several pairs of processes."""

from collections.abc import Callable
from concurrent.futures import Executor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass

from warpsmith.domain.job import Workload
from warpsmith.domain.launch_size import LaunchSize
from warpsmith.domain.outcome import MIN_CLAIM, Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.measure.protocol import winner_blocks
from warpsmith.measure.statistics import speedup_interval
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.timing.paired_blocks import Side, TimedBlocks, block_plan, interleaved, joined
from warpsmith.whereabouts import HERE

PROCESSES = 3
"""Number of process pairs over which the blocks of a comparison are spread."""
HOST_PROCESSES = 2
"""The same number if kernels run on the host's cores, whose times differ more between blocks than between
processes."""
MIN_PAIRS = 3
"""Least number of block pairs per pair of processes."""
LOOK_PAIRS = 4
"""Number of block pairs of the first processes after which a comparison may end for want of a gain."""


@dataclass(frozen=True)
class Built:
    """A kernel of a comparison, as it is launched in the processes of its session."""

    session: DeviceSession
    compiled: Compiled
    size: LaunchSize

    def side(self, workload: Workload) -> Side:
        """Load it in the session's child."""
        handle = self.session.device(workload).load(self.compiled)
        return Side(self.session, LoadedKernel(handle, workload, self.size))


@dataclass(frozen=True)
class Surroundings:
    """What goes on around the blocks of a comparison."""

    quiet: Callable[[], AbstractContextManager[None]]
    """Context in which the host does nothing but time. Outside of it processes are opened."""
    beside: Executor
    """Opens the second process of a pair while the first one opens. Its threads live as long as the
    processes, which end with the thread that opened them."""


def timed_in_pairs(
    workload: Workload, own: Built, winner: Built, pairs: int, least_gain: float | None, around: Surroundings
) -> TimedBlocks | Rejected:
    """Interleaved blocks over several pairs of processes; fewer if the first few show no gain.

    The addresses of a process's buffers change the time of small kernels by a per cent or two. A single
    pair would count that as a difference of the kernels, however many blocks it has. That is why one never
    suffices for a claim. To keep the user's kernel it does, if the whole interval of its first blocks is
    below what may be claimed.

    Args:
        own: the user's kernel.
        pairs: block pairs of all processes together.
        least_gain: relative gain, beyond the device's noise, that a claim needs; None: all pairs are timed.
        around: how processes are opened, and blocks timed.
    """
    session = own.session
    processes = HOST_PROCESSES if session.info.shares_host else PROCESSES
    processes = max(1, min(processes, pairs // MIN_PAIRS))
    plan = block_plan(session.job.objective.cache)
    parts: list[TimedBlocks] = []
    for turn in range(processes):
        HERE.at(f"verification: pairs of {workload.key}, process {turn + 1} of {processes}")
        opening = around.beside.submit(_opened, winner, workload, anew=turn > 0)
        try:
            first = _opened(own, workload, anew=turn > 0)
        finally:
            wait([opening])
        sides = first, opening.result()
        blocks = sides[0].block(plan), sides[1].block(plan)
        share = pairs // processes + (turn < pairs % processes)
        order = winner_blocks(share, session.inputs.seed + turn)
        look = 2 * LOOK_PAIRS if not turn and processes > 1 and least_gain is not None else 0
        with around.quiet():
            for some in filter(None, (order[:look], order[look:])):
                part = interleaved(some, *blocks, session.ports.conditions)
                if isinstance(part, Rejected):
                    return part
                parts.append(part)
                if look and len(parts) == 1 and least_gain is not None and _in_vain(part, least_gain):
                    return part
            refused = sides[1].last_checks(plan)
        if refused is not None:
            return refused
    return joined(parts)


def _opened(built: Built, workload: Workload, *, anew: bool) -> Side:
    """A kernel loaded in its session's child; anew: in another one than before."""
    if anew:
        built.session.renew()
    return built.side(workload)


def _in_vain(timed: TimedBlocks, least_gain: float) -> bool:
    """True if no gain that could be claimed lies within the interval."""
    interval = speedup_interval(timed.samples["A"], timed.samples["B"])
    return interval.high <= 1 + max(MIN_CLAIM, least_gain)
