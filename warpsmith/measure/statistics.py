"""Summaries of samples, and confidence intervals of speed-ups."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.templates.outcome import Interval, TimeSummary, Verdict, margin_of

RESAMPLES = 4000
NOISY_WIDTH = 0.25
"""Relative width (high - low, divided by the estimate) above which an interval supports no claim."""

Blocks = Sequence[Sequence[float]]


def summarise(samples_us: Sequence[float], launches: int) -> TimeSummary:
    """Median and 10th/90th percentiles of samples in microseconds.

    Raises:
        ValueError: no samples, or one that is not a positive number.
    """
    values = np.asarray(samples_us, dtype=np.float64)
    if values.size == 0 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("samples must be positive and at least one")
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
    return TimeSummary(
        median_us=float(median),
        low_us=float(low),
        high_us=float(high),
        samples=values.size,
        launches_per_sample=max(1, launches),
    )


def speedup_interval(baseline_blocks: Blocks, candidate_blocks: Blocks, seed: int = 0) -> Interval:
    """Speed-up, baseline time divided by candidate time, with its 95 % BCa bootstrap interval.

    The unit of resampling is the block pair, since launches within a block are correlated. Each pair gives
    the ratio of its two medians; the estimate is the median ratio.

    Args:
        baseline_blocks: samples of each baseline block, µs; as many blocks as the candidate has.
        seed: seed of the resampling, which makes a figure reproducible.

    Raises:
        ValueError: fewer than three pairs, or unequal numbers of blocks.
    """
    if len(baseline_blocks) != len(candidate_blocks) or len(baseline_blocks) < 3:
        raise ValueError("needs the same number of blocks on both sides, at least three")
    ratios = np.array(
        [np.median(a) / np.median(b) for a, b in zip(baseline_blocks, candidate_blocks, strict=True)]
    )
    low, high = _bca(ratios, seed)
    return Interval(estimate=float(np.median(ratios)), low=low, high=high)


def width_of_blocks(blocks: Blocks) -> float:
    """Half width of a kernel's A/A interval, from its own blocks: each is compared with the next one.

    The order of two alternates, so that a drift cancels.

    Args:
        blocks: samples of at least four blocks, µs, in order.
    """
    turned = [(a, b) if i % 2 else (b, a) for i, (a, b) in enumerate(pairwise(blocks))]
    interval = speedup_interval([a for a, _ in turned], [b for _, b in turned])
    return max(interval.high - 1.0, 1.0 - interval.low)


def verdict_of(interval: Interval, aa_width: float) -> Verdict:
    """The claim that an interval supports.

    Args:
        aa_width: half width of the workload's A/A interval (a kernel against itself).
    """
    margin = margin_of(aa_width)
    if interval.low > 1 + margin:
        return Verdict.FASTER
    if interval.high < 1 / (1 + margin):
        return Verdict.SLOWER
    is_wide = interval.high - interval.low > NOISY_WIDTH * interval.estimate
    return Verdict.NOISY if is_wide else Verdict.EQUAL


def _bca(values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of the median (Efron 1987).

    The acceleration comes from the jackknife of the mean, since the jackknife of a median takes at most three
    values and carries no information.
    """
    estimate = float(np.median(values))
    if np.ptp(values) == 0:
        return estimate, estimate
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, values.size, size=(RESAMPLES, values.size))
    medians = np.sort(np.median(values[picks], axis=1))
    normal = NormalDist()
    below = (np.count_nonzero(medians < estimate) + 0.5 * np.count_nonzero(medians == estimate)) / RESAMPLES
    bias = normal.inv_cdf(min(max(below, 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    centred = values.mean() - values
    denominator = 6.0 * float(np.sum(centred**2)) ** 1.5
    acceleration = float(np.sum(centred**3)) / denominator if denominator else 0.0
    ends = []
    for probability in (0.025, 0.975):
        z = bias + normal.inv_cdf(probability)
        level = normal.cdf(bias + z / (1 - acceleration * z))
        ends.append(float(np.quantile(medians, level)))
    return ends[0], ends[1]
