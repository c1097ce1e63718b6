"""Evidence behind the figures of a report: device state during timing, sanitizers, counters."""

from collections.abc import Iterator

from warpsmith.domain.templates.outcome import Comparison
from warpsmith.http_models import JobResult


def evidence_rows(result: JobResult) -> Iterator[tuple[str, ...]]:
    """Rows by workload: clocks, temperature and power over the timed blocks, throttled blocks, sanitizers.

    Workloads without such evidence have no row.
    """
    for c in result.comparisons:
        if c.blocks or c.sanitizers:
            yield c.workload, *_conditions(c), _sanitizers(c)


def counter_rows(result: JobResult) -> Iterator[tuple[str, ...]]:
    """Rows by hardware counter: its value for the user's kernel and for the best of the search."""
    if result.facts is None:
        return
    before = result.facts.baseline.counters
    best = {} if result.facts.best is None else result.facts.best.counters
    for name in dict.fromkeys((*before, *best)):
        yield name, *(f"{kernel[name]:,.6g}" if name in kernel else "" for kernel in (before, best))


def _conditions(comparison: Comparison) -> tuple[str, ...]:
    blocks = comparison.blocks
    if not blocks:
        return "", "", "", ""
    throttled = sum(bool(b.throttled) for b in blocks)
    return (
        _range([b.core_mhz for b in blocks]),
        _range([b.temperature_c for b in blocks]),
        f"{_range([round(b.power_w) for b in blocks])} of {blocks[0].power_limit_w:.0f}",
        f"{throttled} of {len(blocks)}",
    )


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _sanitizers(comparison: Comparison) -> str:
    clean = [tool for tool, words in comparison.sanitizers.items() if not words]
    found = [f"{tool}: {words}" for tool, words in comparison.sanitizers.items() if words]
    return "; ".join([*([f"{', '.join(clean)}: nothing found"] if clean else []), *found])
