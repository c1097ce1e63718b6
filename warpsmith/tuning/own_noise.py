"""Noise of the user's kernel, workload by workload: it is timed against itself in another process."""

from dataclasses import replace
from types import TracebackType

from warpsmith.domain.jobs.plan import Compiled
from warpsmith.measure.protocol import winner_blocks
from warpsmith.measure.statistics import speedup_interval
from warpsmith.tuning.checks.baseline_time import BaselineTime
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.timing.paired_blocks import TimedSide, block_plan

AA_PAIRS = 10
"""Block pairs of the kernel against itself, over all workloads of a job."""
LEAST_AA_PAIRS = 6
"""Block pairs on each workload at least. Of fewer, the interval is the whole range."""


class OwnNoise:
    """Context in which workloads are timed against themselves; the second process lives as long."""

    def __init__(self, session: DeviceSession, prefetch: ReferencePrefetch, time_left: BaselineTime) -> None:
        self._session = session
        self._prefetch = prefetch
        self._time_left = time_left
        self._second: DeviceSession | None = None
        self.widths: dict[str, float] = {}
        """Half widths of the A/A intervals by workload key; without workloads for which there was no time."""

    def __enter__(self) -> "OwnNoise":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._second is not None:
            self._second.close()

    def measure(self, compiled: Compiled, loaded: LoadedKernel) -> None:
        """Measure the half width on a workload, if there is time for it.

        Raises:
            ChildDied: a child is gone.
            KernelRefused: the driver refused the launch.
        """
        session = self._session
        # The workload was timed a moment ago.
        plan = replace(block_plan(session.job.objective.cache), is_warm=True)
        most = max(LEAST_AA_PAIRS, AA_PAIRS // len(session.job.workloads))
        pairs = self._time_left.pairs(most, plan)
        if not pairs:
            return
        if self._second is None:
            self._second = session.sibling()
        workload = loaded.workload
        other = self._second.device(workload).load(compiled)
        sides = {"A": TimedSide(session, loaded), "B": TimedSide(self._second, replace(loaded, handle=other))}
        blocks: dict[str, list[tuple[float, ...]]] = {"A": [], "B": []}
        with self._prefetch.paused():
            for side in winner_blocks(pairs, session.inputs.seed):
                timed = sides[side].session.sampler.time(sides[side].loaded, plan)
                blocks[side].append(timed.samples_us)
        self._second.device(workload).unload(other)
        self._second.release(workload)
        interval = speedup_interval(blocks["A"], blocks["B"])
        self.widths[workload.key] = max(interval.high - 1.0, 1.0 - interval.low, 0.0)
