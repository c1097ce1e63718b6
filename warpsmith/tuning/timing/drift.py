"""Drift: the user's kernel is timed again in a slice, since trials are timed against a stored figure."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from operator import truediv
from statistics import median
from typing import TypeVar

from warpsmith.domain.jobs.job import Job, Metric, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled, TimingPlan
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan, winner_blocks
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.objective import steady_times_us, times_us
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.timing.paired_blocks import block_plan

T = TypeVar("T")

EVERY_S = 5.0
"""Seconds between two measurements at least."""
SHARE = 0.1
"""Limit on the share of the time that they take."""
TOLERATED = 0.1
"""Relative drift up to which nothing is corrected, since a measurement has its own noise."""
CONFIRMING_PAIRS, NEXT_PAIRS = 4, 2
"""Pairs of blocks that confirm an apparent best, and one soon after another; one pair if a launch is long."""
LONG_LAUNCH_US = 100_000.0


def corrected(job: Job, outcome: Outcome, drifts: Mapping[str, float]) -> Outcome:
    """The outcome of a trial, corrected for a device that ran slower by these ratios.

    Energies are unchanged: a throttled device takes less power for longer.

    Args:
        drifts: current time of the user's kernel divided by its baseline time, by workload key.
    """
    if not isinstance(outcome, Measured):
        return outcome
    total = sum(w.weight for w in job.workloads)
    timed = {t.workload for t in outcome.timings}
    logs = sum(w.weight * math.log(drifts.get(w.key, 1.0)) for w in job.workloads if w.key in timed)
    ratio = math.exp(logs / total)
    if all(abs(drifts.get(key, 1.0) - 1.0) <= TOLERATED for key in timed):
        return outcome
    objective = outcome.objective / (ratio if job.objective.metric is Metric.TIME else 1.0)
    return outcome.model_copy(update={"drift": ratio, "drifts": dict(drifts), "objective": objective})


class DriftWatch:
    """Times the user's kernel beside trials: at the beginning, at intervals, and against an apparent best.

    Trials timed while it runs slower or faster than before are marked with the ratio, and their objective is
    divided by it. Published figures come from interleaved blocks and need no correction.

    Args:
        best: best objective of the job so far; None: there is none.
    """

    def __init__(
        self, session: DeviceSession, baseline_us: Mapping[str, float], best: float | None = None
    ) -> None:
        self._session = session
        self._baseline_us = baseline_us
        self._kernel = session.inputs.user_template.configured(session.job.space.defaults)
        self._pending: Future[Compiled | Rejected] | None = None
        self._due_at = self._confirms_fully_at = 0.0
        self._drifts = dict.fromkeys(baseline_us, 1.0)
        self._best = 1.0 if best is None else min(best, 1.0)
        self._best_us = dict(baseline_us)

    def prepare(
        self, kernel: ConfiguredKernel | None = None, compiling: "Future[Compiled | Rejected] | None" = None
    ) -> None:
        """Start compiling the user's kernel, unless times are recorded ones.

        Args:
            kernel: one that compiles anyway, which may be the same.
        """
        if self._pending is None and not self._session.info.backend.language.is_recorded:
            same = compiling is not None and kernel == self._kernel
            self._pending = compiling if same else self._session.submit(self._kernel)

    @property
    def is_steady(self) -> bool:
        """True if, at the last measurement, times were comparable with earlier ones."""
        return all(abs(ratio - 1.0) <= TOLERATED for ratio in self._drifts.values())

    def drifts(self) -> dict[str, float]:
        """Current time of the user's kernel divided by its baseline time, by workload key, measured now if
        due."""
        began = time.monotonic()
        if self._pending is not None and began >= self._due_at:
            found = self._on_device(self._pending.result(), self._own_times)
            self._drifts |= {key: us / self._baseline_us[key] for key, us in found.items()}
            now = time.monotonic()
            self._due_at = now + max(EVERY_S, (now - began) / SHARE)
        return dict(self._drifts)

    def learn(self, outcome: Outcome) -> None:
        """Record an outcome that was settled: what looks better from now on is confirmed first."""
        if isinstance(outcome, Measured):
            self._best = min(self._best, outcome.objective)
            for key, us in steady_times_us(self._session.job, outcome).items():
                self._best_us[key] = min(us, self._best_us[key])

    def confirmed(self, outcome: Outcome, kernel: ConfiguredKernel, compiled: Compiled | Rejected) -> Outcome:
        """The outcome of an apparent best of the job or of a workload, timed in blocks that alternate with
        those of the user's kernel; any other outcome, and whatever is no faster than that, as it is."""
        if self._pending is None or not isinstance(outcome, Measured) or isinstance(compiled, Rejected):
            return outcome
        job = self._session.job
        if job.objective.metric is not Metric.TIME:
            return outcome
        times = steady_times_us(job, outcome)
        better = any(us < self._best_us[key] for key, us in times.items())
        if not better and outcome.objective >= self._best:
            return outcome
        paired = self._on_device(
            self._pending.result(), lambda own: self._paired(own, kernel, compiled, list(times))
        )
        return outcome if not paired else self._with(outcome, paired)

    def _with(self, outcome: Measured, paired: Mapping[str, tuple[float, float]]) -> Measured:
        """The outcome with the times of both kernels, µs, by workload key."""
        job = self._session.job
        before = times_us(job, outcome.timings)
        timings = tuple(t.scaled(paired[t.workload][1] / before[t.workload]) for t in outcome.timings)
        drifts = {key: own / self._baseline_us[key] for key, (own, _) in paired.items()}
        self._drifts |= drifts
        total = sum(w.weight for w in job.workloads)
        weights = {w.key: w.weight / total for w in job.workloads}
        objective = math.exp(sum(weights[k] * math.log(new / own) for k, (own, new) in paired.items()))
        drift = math.exp(sum(weights[k] * math.log(ratio) for k, ratio in drifts.items()))
        return outcome.model_copy(
            update={"timings": timings, "objective": objective, "drift": drift, "drifts": drifts}
        )

    def _own_times(self, own: Compiled) -> dict[str, float]:
        """µs of the user's kernel by workload key."""
        plan, found = search_plan(self._session.job.objective.cache), {}
        for workload in self._session.job.workloads:
            loaded = self._loaded(self._kernel, own, workload)
            found[workload.key] = self._median_us(loaded, plan)
            self._session.device(workload).unload(loaded.handle)
        return found

    def _paired(
        self, own: Compiled, kernel: ConfiguredKernel, compiled: Compiled, keys: Sequence[str]
    ) -> dict[str, tuple[float, float]]:
        """µs of the user's kernel and of another one by workload key; their ratio is the median of pairs."""
        session, found = self._session, {}
        plan, began = block_plan(session.job.objective.cache), time.monotonic()
        most = CONFIRMING_PAIRS if began >= self._confirms_fully_at else NEXT_PAIRS
        for workload in (w for w in session.job.workloads if w.key in keys):
            pairs = 1 if self._baseline_us[workload.key] > LONG_LAUNCH_US else most
            sides = {
                "A": self._loaded(self._kernel, own, workload),
                "B": self._loaded(kernel, compiled, workload),
            }
            blocks: dict[str, list[float]] = {"A": [], "B": []}
            for side in winner_blocks(pairs, session.inputs.seed):
                blocks[side].append(self._median_us(sides[side], plan))
            for loaded in sides.values():
                session.device(workload).unload(loaded.handle)
            own_us = median(blocks["A"])
            found[workload.key] = own_us, own_us / median(map(truediv, blocks["A"], blocks["B"]))
        self._confirms_fully_at = began + (time.monotonic() - began) / SHARE
        return found

    def _loaded(self, kernel: ConfiguredKernel, compiled: Compiled, workload: Workload) -> LoadedKernel:
        handle = self._session.device(workload).load(compiled)
        return LoadedKernel(handle, workload, launch_size(kernel, workload, self._session.info))

    def _median_us(self, loaded: LoadedKernel, plan: TimingPlan) -> float:
        samples = self._session.sampler.time(loaded, plan)
        return summarise(samples.samples_us, samples.launches).median_us

    def _on_device(
        self, own: Compiled | Rejected, measure: Callable[[Compiled], dict[str, T]]
    ) -> dict[str, T]:
        """Times on the device; empty if a kernel was refused or ended its process."""
        if isinstance(own, Rejected):
            return {}
        try:
            return measure(own)
        except (KernelRefused, ExpressionError):
            return {}
        except ChildDied:
            self._session.renew(faulted=True)
            return {}
