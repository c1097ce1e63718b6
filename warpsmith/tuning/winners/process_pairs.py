"""Blocks of winners and of the user's kernel over several pairs of processes."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import MIN_CLAIM, Rejected, Stage, margin_of
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import winner_blocks
from warpsmith.measure.statistics import speedup_interval
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.timing.paired_blocks import TimedBlocks, TimedSide, block_plan, interleaved, joined
from warpsmith.tuning.winners.gain_checks import FreshBlocks

PROCESSES = 3
"""Number of process pairs over which the blocks of a comparison are spread."""
HOST_PROCESSES = 2
"""`PROCESSES` on the host's cores, whose times differ more between blocks than between processes."""
MIN_PAIRS = 3
"""Least number of block pairs per pair of processes."""
CLEAR = 0.05
"""Relative gain beyond what may be claimed with which a comparison ends one pair of processes early: several
times what the addresses of a process change."""
LOOK_PAIRS = 4
"""Number of block pairs of a pair of processes after which a comparison may end."""


@dataclass(frozen=True)
class SizedKernel:
    """A kernel of a comparison, as it is launched in the processes of its session."""

    session: DeviceSession
    compiled: Compiled
    size: LaunchSize

    def side(self, workload: Workload) -> TimedSide:
        """Load it in the session's child."""
        handle = self.session.device(workload).load(self.compiled)
        return TimedSide(self.session, LoadedKernel(handle, workload, self.size))


@dataclass
class Pairing:
    """A winner against the user's kernel on a workload."""

    workload: Workload
    own: SizedKernel
    """The user's kernel."""
    winner: SizedKernel
    least_gain: float | None
    """Relative gain, beyond the device's noise, that a claim needs; None: all pairs are timed."""
    parts: list[TimedBlocks] = field(default_factory=list)
    """Blocks by pair of processes."""
    fresh: FreshBlocks = field(default_factory=FreshBlocks)
    """Blocks with inputs that are new to every launch."""
    refused: Rejected | None = None
    """Rejection by a checked launch, or since a process ended; None: the kernel may win."""
    in_vain: bool = False
    """True once no gain that could be claimed lies within the interval."""
    is_clear: bool = False
    """True while a gain is so large that more blocks or processes would not change a claim."""
    is_over: bool = False
    """True once no further pair of processes is needed."""

    @property
    def goes_on(self) -> bool:
        """True if the next pair of processes times this kernel as well."""
        return not (self.refused is not None or self.in_vain or self.is_over)

    @property
    def timed(self) -> TimedBlocks:
        """All blocks."""
        return joined(self.parts)


@dataclass(frozen=True)
class PairEnvironment:
    """Quiet context, executor and callback between which blocks are timed."""

    quiet: Callable[[], AbstractContextManager[None]]
    """Context in which the host does nothing but time. Outside of it processes are opened."""
    beside: Executor
    """Opens processes beside each other. Its threads live as long as the processes, which end with the thread
    that opened them."""
    last: Callable[[Pairing, TimedSide, TimedSide], None]
    """Called after the last blocks of a pairing, while both kernels are loaded."""


def time_in_pairs(pairings: Sequence[Pairing], pairs: int, around: PairEnvironment) -> None:
    """Interleaved blocks of every pairing over several pairs of processes; fewer if the first show no gain.

    The addresses of a process's buffers change the time of small kernels by a per cent or two. A single
    pair would count that as a difference of the kernels, however many blocks it has. That is why one never
    suffices for a claim. To keep the user's kernel it does, if the whole interval of its first blocks is
    below what may be claimed. A gain that is far above it is not timed in a third, and on the host's own
    cores, where blocks are long, it has as few of them in each of two, as long as both agree. A pair of
    processes serves all pairings, one after the other: opening it takes longer than their blocks.

    Args:
        pairs: block pairs of all processes together.
        around: how processes are opened, and blocks timed.
    """
    if not pairings:
        return
    shares_host = pairings[0].own.session.info.shares_host
    processes = HOST_PROCESSES if shares_host else PROCESSES
    processes = max(1, min(processes, pairs // MIN_PAIRS))
    for turn in range(processes):
        running = [e for e in pairings if e.goes_on]
        _open(running, around, anew=turn > 0)
        for place, pairing in enumerate(running):
            PROGRESS.at(f"verification: pairs of {pairing.workload.key}, process {turn + 1} of {processes}")
            sessions = pairing.own.session, pairing.winner.session
            try:
                try:
                    _time(pairing, turn, processes, pairs, around, is_warm=place > 0)
                except (KernelRefused, ExpressionError) as exc:
                    pairing.refused = Rejected(stage=Stage.LAUNCH, reason=str(exc)[:2000])
                for session in sessions:
                    session.release(pairing.workload)
            except ChildDied as exc:
                pairing.refused = Rejected(stage=Stage.RUN, reason=f"ended its process: {exc}"[:2000])
                for session in sessions:
                    session.renew(faulted=True)


def _open(running: Sequence[Pairing], around: PairEnvironment, *, anew: bool) -> None:
    """Open the processes of all pairings with the first workload of each; anew: others than before.

    What goes wrong shows again when a pairing uses its process.
    """
    first: dict[int, tuple[DeviceSession, Workload]] = {}
    for pairing in running:
        for built in (pairing.own, pairing.winner):
            first.setdefault(id(built.session), (built.session, pairing.workload))

    def opened(session: DeviceSession, workload: Workload) -> None:
        if anew:
            session.renew()
        with suppress(ChildDied, KernelRefused, ExpressionError):
            session.device(workload)

    wait([around.beside.submit(opened, *one) for one in first.values()])


def _time(
    pairing: Pairing, turn: int, processes: int, pairs: int, around: PairEnvironment, *, is_warm: bool
) -> None:
    """The blocks of a pairing in one pair of processes; is_warm: another one was just timed."""
    session, workload = pairing.own.session, pairing.workload
    plan = block_plan(session.job.objective.cache)
    loading = around.beside.submit(pairing.winner.side, workload)
    try:
        first = pairing.own.side(workload)
    finally:
        wait([loading])
    sides = first, loading.result()
    share = pairs // processes + (turn < pairs % processes)
    order = winner_blocks(share, session.inputs.seed + turn)
    # The first block of all has the clocks up for those that follow.
    warm = [is_warm or order[0] != side for side in "AB"]
    blocks = [side.block(replace(plan, is_warm=w)) for side, w in zip(sides, warm, strict=True)]
    is_dear = session.info.shares_host  # blocks of a GPU are over before its processes are open
    may_end = processes > 1 and pairing.least_gain is not None
    look = 2 * LOOK_PAIRS if may_end and (not turn or (is_dear and pairing.is_clear)) else 0
    own: list[TimedBlocks] = []
    with around.quiet():
        for some in filter(None, (order[:look], order[look:])):
            part = interleaved(some, blocks[0], blocks[1], session.ports.conditions)
            if isinstance(part, Rejected):
                pairing.refused = part
                return
            own.append(part)
            pairing.parts[turn:] = [joined(own)]
            pairing.in_vain = not turn and len(own) == 1 and may_end and _in_vain(part, pairing.least_gain)
            pairing.is_clear = _is_clear(pairing)
            if look and (pairing.in_vain or (is_dear and pairing.is_clear)):
                break
        refused = None
        if not pairing.in_vain:
            if session.inputs.defences.fresh_inputs:
                pairing.fresh.time(*sides, pairing.timed, turn, processes)
            refused = sides[1].last_checks(plan)
    if refused is not None:
        pairing.refused = refused
        return
    pairing.is_over = turn == processes - 1 or (turn > 0 and pairing.is_clear)
    if pairing.in_vain or pairing.is_over:
        around.last(pairing, *sides)


def _is_clear(pairing: Pairing) -> bool:
    """True if a gain is so far beyond what may be claimed that no other addresses would change the claim."""
    if pairing.least_gain is None:
        return False
    least = 1 + margin_of(pairing.least_gain) + CLEAR
    return min((i.low for i in pairing.timed.intervals()), default=0.0) > least


def _in_vain(timed: TimedBlocks, least_gain: float | None) -> bool:
    """True if no gain that could be claimed lies within the interval."""
    interval = speedup_interval(timed.samples["A"], timed.samples["B"])
    return interval.high <= 1 + max(MIN_CLAIM, least_gain or 0.0)
