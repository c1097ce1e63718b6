"""Finished trials that may win, with their results in the search."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.domain.jobs.job import Job, Metric, Workload
from warpsmith.domain.templates.outcome import Comparison, Measured, NoGain, Verdict
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.measure.energy import pareto
from warpsmith.tuning.objective import costs, steady_times_us, time_us
from warpsmith.tuning.tasks import BaselineResult, Choice
from warpsmith.tuning.timing.energy import saves_energy
from warpsmith.tuning.winners.cover_workloads import choose_few

Name = tuple[str, str]
"""A candidate and a configuration's key, by which a finalist is known."""


@dataclass(frozen=True)
class Finalist:
    """A finished trial of a candidate."""

    candidate: str
    template: Template
    configuration: Configuration
    outcome: Measured

    @property
    def name(self) -> Name:
        """Candidate and configuration that identify a finalist."""
        return self.candidate, configuration_key(self.configuration)


def few(job: Job, finalists: Sequence[Finalist], baseline: BaselineResult | None) -> Sequence[Finalist]:
    """The finalists that serve all workloads best, no more than the dispatch table may hold.

    If none is better than the baseline, the best is kept.
    """
    if job.objective.configurations is None or not finalists:
        return finalists
    table = np.array([[searched_cost(job, w, f) for w in job.workloads] for f in finalists])
    known = {} if baseline is None else costs(job, baseline.timings)
    dearest = np.where(np.isfinite(table), table, 0.0).max(axis=0) + 1.0
    before = np.array([known.get(w.key) or dearest[i] for i, w in enumerate(job.workloads)])
    weights = np.array([w.weight for w in job.workloads])
    places = choose_few(table, before, weights, job.objective.configurations)
    return [finalists[i] for i in places] or [min(finalists, key=lambda f: f.outcome.objective)]


def ranked(
    job: Job, workload: Workload, finalists: Iterable[Finalist], baseline: BaselineResult | None = None
) -> list[Finalist]:
    """Finalists measured on `workload`, best first; those slower than the baseline come last."""
    known = {} if baseline is None else {t.workload: time_us(job, t) for t in baseline.timings}
    before = known.get(workload.key) or math.inf
    measured = [
        (searched_us(job, workload, f) > before, value, f)
        for f in finalists
        if (value := searched_cost(job, workload, f)) < math.inf
    ]
    return [f for _, _, f in sorted(measured, key=lambda m: m[:2])]


def within_reach(
    job: Job, workload: Workload, finalists: Sequence[Finalist], baseline: BaselineResult | None, most: int
) -> list[Finalist]:
    """The best finalists of a workload; if all are of one template, the last place is for the best of another
    that promises a gain, since a fault of a template may be in all of its configurations."""
    kept = [*finalists[:most]]
    if len({f.candidate for f in kept}) == 1 and most > 1:
        known = {} if baseline is None else {t.workload: time_us(job, t) for t in baseline.timings}
        before = known.get(workload.key) or math.inf
        others = (f for f in finalists[most:] if f.candidate != kept[0].candidate)
        other = next((f for f in others if searched_us(job, workload, f) < before), None)
        kept = kept if other is None else [*kept[: most - 1], other]
    return kept


def without_gain(
    job: Job, finalists: Sequence[Finalist], baseline: BaselineResult | None, least: float | None
) -> dict[str, NoGain]:
    """Workloads, by key, whose best trial promises less than the least gain.

    Args:
        least: relative gain below which a verification could claim nothing; None: no workload is left out.
    """
    if baseline is None or least is None or job.objective.metric is not Metric.TIME:
        return {}
    known = {t.workload: time_us(job, t) for t in baseline.timings}
    found = {}
    for workload in job.workloads:
        before = known.get(workload.key)
        best = min((searched_us(job, workload, f) for f in finalists), default=math.inf)
        # The search may have seen less of a gain, by as much as runs of one kernel differ.
        if before and before * (1 + baseline.width_of(workload.key)) < best * (1 + least) < math.inf:
            found[workload.key] = NoGain(workload=workload.key, baseline_us=before, best_us=best)
    return found


def searched_cost(job: Job, workload: Workload, finalist: Finalist) -> float:
    """Time or energy, as the objective asks, of a finalist on a workload in the search; infinity if
    unknown."""
    if job.objective.metric is Metric.TIME:
        return searched_us(job, workload, finalist)
    return costs(job, finalist.outcome.timings).get(workload.key, math.inf)


def searched_us(job: Job, workload: Workload, finalist: Finalist) -> float:
    """Time of a finalist on a workload in the search, µs; infinity if unknown."""
    return steady_times_us(job, finalist.outcome).get(workload.key) or math.inf


def searched_speedups(job: Job, finalist: Finalist, baseline: BaselineResult | None) -> dict[str, float]:
    """Speed-ups of a finalist in the search, by workload."""
    known = {} if baseline is None else {t.workload: time_us(job, t) for t in baseline.timings}
    found = {}
    for workload in job.workloads:
        before, after = known.get(workload.key), searched_us(job, workload, finalist)
        if before and after < math.inf:
            found[workload.key] = before / after
    return found


def chosen(
    job: Job,
    workload: Workload,
    finalist: Finalist | None,
    verified: Comparison | None,
    baseline: BaselineResult | None,
) -> Choice:
    """The choice for a workload; the baseline if there is no finalist."""
    if finalist is None:
        return Choice(workload=workload.key)
    return Choice(
        workload=workload.key,
        candidate=finalist.candidate,
        configuration=finalist.configuration,
        speedups={} if verified is None else {verified.workload: verified.speedup.low},
        searched={k: v for k, v in searched_speedups(job, finalist, baseline).items() if k != workload.key},
    )


def serves(job: Job, verified: Comparison) -> bool:
    """True if a verified configuration may replace the baseline."""
    if job.objective.metric is Metric.TIME:
        return verified.verdict is Verdict.FASTER
    return verified.verdict in (Verdict.FASTER, Verdict.EQUAL) and saves_energy(verified)


def elected(
    job: Job, verified: Sequence[tuple[Comparison, Finalist]]
) -> tuple[Comparison | None, Finalist | None]:
    """The comparison to publish, and the server of the workload (None: the baseline).

    Args:
        verified: comparisons, best in the search first; for time there is one only, unless one was withdrawn.
    """
    if not verified:
        return None, None
    able = [pair for pair in verified if serves(job, pair[0])]
    is_time = job.objective.metric is Metric.TIME
    published, finalist = min(able, key=lambda p: _cost(p[0], is_time)) if able else verified[0]
    points = {c.configuration_key: (c.best_us, c.best_mj) for c, _ in verified if c.best_mj is not None}
    if points and published.baseline_mj is not None:
        front = pareto({"baseline": (published.baseline_us, published.baseline_mj), **points})
        published = published.model_copy(update={"pareto": front})
    return published, finalist if able else None


def _cost(verified: Comparison, is_time: bool) -> float:
    return verified.best_us if is_time else verified.best_mj or 0.0


def overall_speedup(job: Job, comparisons: Sequence[Comparison], choices: Sequence[Choice]) -> float:
    """Weighted geometric mean of the verified speed-ups; a kept baseline counts as 1."""
    taken = {c.workload for c in choices if c.candidate is not None}
    speedups = {c.workload: c.speedup.estimate for c in comparisons if c.workload in taken}
    total = sum(w.weight for w in job.workloads)
    logs = sum(w.weight * math.log(speedups.get(w.key, 1.0)) for w in job.workloads)
    return math.exp(logs / total)
