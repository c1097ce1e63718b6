"""Findings of a table's jobs by row: the engine's default, the best, a row that was checked. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from warpsmith.domain.templates.outcome import (
    Comparison,
    CutShort,
    Measured,
    Verdict,
    WorkloadTiming,
    margin_of,
)
from warpsmith.domain.templates.space import Configuration, configuration_key, is_shape
from warpsmith.extensions.clients.commands.recheck_changes import published
from warpsmith.http_models import JobResult, TrialView

BATCH = "M"
"""The dimension whose values are the keys of a table."""
AS_GOOD = 1.02
"""Time of a row over the best that was tried, up to which it is as good."""


@dataclass(frozen=True)
class FoundRow:
    """One batch size of a table."""

    size: int
    default_us: float
    noise: float
    """Relative difference from the default that is none."""
    comparison: Comparison | None
    """Winner against the default; None where the default stays."""
    tried: Mapping[str, float]
    """Time over the default's by `configuration_key`, as the search saw it; with the default."""

    @property
    def speedup(self) -> float:
        """Default time divided by the best's; 1 where the default stays."""
        found = self.comparison
        return found.speedup.estimate if found and found.verdict is Verdict.FASTER else 1.0

    def words_on(self, own: Configuration | None) -> tuple[str, str]:
        """Speed-up of a table's row over the default as the search saw it, and what to do with the row.

        Args:
            own: the row; None: the table is missing, and the best of what was tried stands for it.
        """
        best = min(self.tried.values())
        ratio = best if own is None else self.tried.get(configuration_key(own))
        if ratio is None:
            return "", "refused here: take it out"
        said = f"{1 / ratio:.2f}x"
        if own is None:
            return said, "worth a table" if ratio < 1 - self.noise else "the default is as good"
        if ratio > 1 + self.noise:
            return said, "slower than the default: take it out"
        behind = ratio / min(best, 1.0)
        return said, "as good as any tried" if behind <= AS_GOOD else f"{behind - 1:.0%} behind another row"


def found_rows(
    results: Sequence[JobResult], trials: Sequence[TrialView] = (), batch: str = BATCH
) -> Iterator[FoundRow]:
    """Rows of all results, by batch size.

    Args:
        trials: finished trials of all results.
    """
    rows = []
    for result in results:
        compared = {c.workload: c for c in result.comparisons}
        served = {c.workload: c for c in published(result)}
        default_us = {t.workload: _us(t) for t in result.baseline}
        defaults = configuration_key(result.job.space.defaults)
        for workload in result.job.workloads:
            key, size = workload.key, workload.dimensions[batch]
            found, own = compared.get(key), default_us.get(key, math.nan)
            noise = margin_of(found.aa_width if found else result.aa_width or 0.0)
            tried = {defaults: 1.0} | {name: us / own for name, us in _of_size(trials, key)}
            us = found.baseline_us if found else own
            rows.append(FoundRow(size, us, noise, served.get(key), tried))
    yield from sorted(rows, key=lambda row: row.size)


def mean_speedup(rows: Sequence[FoundRow]) -> float:
    """Geometric mean of the speed-ups; 1 without a row."""
    return geometric_mean(row.speedup for row in rows) if rows else 1.0


def _of_size(trials: Sequence[TrialView], workload: str) -> Iterator[tuple[str, float]]:
    """Times in µs by `configuration_key`."""
    for trial in trials:
        outcome = trial.outcome
        timings = outcome.steady_timings if isinstance(outcome, Measured) else ()
        for timing in outcome.timings if isinstance(outcome, CutShort) else timings:
            if timing.workload == workload:
                own = {n: v for n, v in trial.configuration.items() if not is_shape(n)}
                yield configuration_key(own), _us(timing)


def _us(timing: WorkloadTiming) -> float:
    time = timing.cold or timing.hot
    return math.nan if time is None else time.median_us
