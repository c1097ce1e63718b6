"""Drift: the user's kernel is timed again in a slice, since trials are timed against a stored figure."""

import time
from collections.abc import Mapping

from warpsmith.domain.device import Backend
from warpsmith.domain.job import Metric
from warpsmith.domain.launch_size import launch_size
from warpsmith.domain.outcome import Measured, Outcome, Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel

EVERY_S = 5.0
"""Seconds between two measurements."""
TOLERATED = 0.1
"""Relative drift up to which nothing is corrected, since a measurement has its own noise."""


def corrected(metric: Metric, outcome: Outcome, ratio: float) -> Outcome:
    """The outcome of a trial, corrected for a device that ran slower by this ratio.

    Energies are unchanged: a throttled device takes less power for longer.
    """
    if not isinstance(outcome, Measured) or abs(ratio - 1.0) <= TOLERATED:
        return outcome
    objective = outcome.objective / (ratio if metric is Metric.TIME else 1.0)
    return outcome.model_copy(update={"drift": ratio, "objective": objective})


class DriftWatch:
    """Times the user's kernel on one workload at intervals.

    Trials timed while it runs slower or faster than before are marked with the ratio, and their objective is
    divided by it. Published figures come from interleaved blocks and need no correction.
    """

    def __init__(self, session: DeviceSession, baseline_us: Mapping[str, float]) -> None:
        self._session = session
        self._baseline_us = baseline_us
        self._workload = min(session.job.workloads, key=lambda w: baseline_us[w.key])
        self._kernel = session.inputs.user_template.configured(session.job.space.defaults)
        self._pending = session.submit(self._kernel) if session.info.backend is not Backend.REPLAY else None
        self._measured_at = 0.0
        self._ratio = 1.0

    @property
    def is_steady(self) -> bool:
        """True if, at the last measurement, times were comparable with earlier ones."""
        return abs(self._ratio - 1.0) <= TOLERATED

    def ratio(self) -> float:
        """Current time of the user's kernel divided by its baseline time, measured now if due."""
        if self._pending is not None and time.monotonic() - self._measured_at >= EVERY_S:
            self._measure(self._pending.result())
            self._measured_at = time.monotonic()
        return self._ratio

    def _measure(self, compiled: Compiled | Rejected) -> None:
        if isinstance(compiled, Rejected):
            return
        session, workload = self._session, self._workload
        try:
            device = session.device(workload)
            handle = device.load(compiled)
            size = launch_size(self._kernel, workload, session.info)
            plan = search_plan(session.job.objective.cache)
            samples = session.sampler.time(LoadedKernel(handle, workload, size), plan)
            device.unload(handle)
        except KernelRefused:
            return
        except ChildDied:
            session.renew(faulted=True)
            return
        now_us = summarise(samples.samples_us, samples.launches).median_us
        self._ratio = now_us / self._baseline_us[workload.key]
