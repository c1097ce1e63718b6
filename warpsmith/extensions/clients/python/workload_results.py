"""Verified figures of a job by workload, and their table in HTML for notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from warpsmith.domain.templates.outcome import Comparison, Interval, Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.http_models import JobResult
from warpsmith.report.tables import configuration_text


@dataclass(frozen=True)
class WorkloadResult:
    """The verified figures of one workload, or why there are none."""

    workload: str
    """Key of the workload: `hidden=4096,tokens=512`."""
    dimensions: Mapping[str, int]
    weight: float
    """Weight in the overall speed-up."""
    configuration: Configuration | None
    """The configuration that serves it; None: the user's own kernel."""
    baseline_us: float | None
    """Time of a launch of the user's kernel; None: not measured."""
    best_us: float | None
    """Time of a launch of the winner, or of the best trial if there was no gain; None: not measured."""
    speedup: Interval | None
    """Baseline time divided by winner time, with its 95 % interval; None: nothing was verified."""
    verdict: Verdict | None
    """Verdict that the interval supports; None: nothing was verified, and the user's own kernel serves."""


def workload_results(result: JobResult) -> list[WorkloadResult]:
    """Figures of every workload, in the order of the job."""
    chosen = {entry.workload: entry.configuration for entry in result.dispatch}
    compared = {c.workload: c for c in result.comparisons}
    in_vain = {n.workload: (n.baseline_us, n.best_us) for n in result.no_gain}
    found = []
    for workload in result.job.workloads:
        c = compared.get(workload.key)
        baseline_us, best_us = _times_us(c) if c else in_vain.get(workload.key, (None, None))
        found.append(
            WorkloadResult(
                workload=workload.key,
                dimensions=dict(workload.dimensions),
                weight=workload.weight,
                configuration=chosen.get(workload.key),
                baseline_us=baseline_us,
                best_us=best_us,
                speedup=c.speedup if c else None,
                verdict=c.verdict if c else None,
            )
        )
    return found


def html_table(title: str, rows: Sequence[WorkloadResult], notes: Sequence[str]) -> str:
    """A table for notebooks, in the colours of the page around it; all texts are escaped."""
    names = ("workload", "baseline µs", "best µs", "speed-up (95 %)", "verdict", "configuration")
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    below = "".join(f"<div>{escape(note)}</div>" for note in notes)
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>'
    return f"<div><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"


def _cells(row: WorkloadResult) -> str:
    speedup = row.speedup
    texts = (
        row.workload,
        "" if row.baseline_us is None else f"{row.baseline_us:.2f}",
        "" if row.best_us is None else f"{row.best_us:.2f}",
        f"{speedup.estimate:.2f}x ({speedup.low:.2f} to {speedup.high:.2f})" if speedup else "",
        row.verdict.value if row.verdict else "no gain" if row.best_us else "not verified",
        configuration_text(row.configuration),
    )
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _times_us(comparison: Comparison) -> tuple[float, float]:
    return comparison.baseline_us, comparison.best_us
