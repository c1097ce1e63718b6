"""The report as terminal tables that fit in 80 columns."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from warpsmith.domain.templates.space import Configuration
from warpsmith.http_models import JobResult

if TYPE_CHECKING:
    from rich.table import Table


def comparison_table(result: JobResult) -> "Table":
    """Per workload: baseline, best, speed-up with its interval, verdict."""
    overall = "no verified figure" if result.speedup is None else f"{result.speedup:.2f}x over all workloads"
    if result.speedup is not None and not has_gain(result):
        overall = "no gain"
    replayed = " (replayed recordings, nothing was run)" if is_replayed(result) else ""
    titles = ("workload", "baseline µs", "best µs", "speed-up (95 %)", "verdict")
    table = _table(f"{result.job.name}: {overall}{replayed}", titles, left=("workload", "verdict"))
    for workload, baseline, best, speedup, interval, verdict, _ in comparison_rows(result):
        _add_row(table, workload, baseline, best, f"{speedup} ({interval})", verdict)
    return table


def has_gain(result: JobResult) -> bool:
    """True if any workload is served by a kernel other than the original."""
    return any(entry.configuration is not None for entry in result.dispatch)


def reason_lines(result: JobResult) -> list[str]:
    """Lines on why the job ended and how far the search came; for older results, the detail."""
    if result.reason is None:
        return [result.detail] if result.detail else []
    return [line for line in (result.reason.sentence, result.reason.search) if line]


def baseline_table(result: JobResult) -> "Table | None":
    """Timings of the original kernel, for a job that was not verified; None if it was not measured."""
    rows = list(baseline_rows(result))
    if not rows:
        return None
    table = _table("the kernel as it is", ("workload", "cold caches µs", "hot caches µs"))
    for row in rows:
        _add_row(table, *row)
    return table


def baseline_rows(result: JobResult) -> Iterator[tuple[str, ...]]:
    """Cells of `baseline_table`, shared with the HTML report."""
    if result.comparisons or result.no_gain:
        return
    for t in result.baseline:
        yield t.workload, *("" if s is None else f"{s.median_us:.2f}" for s in (t.cold, t.hot))


def is_replayed(result: JobResult) -> bool:
    """True if the times are recordings and therefore not of this job's source."""
    return result.job.kernel.backend.language.is_recorded


def chosen_table(result: JobResult) -> "Table":
    """The configuration of each workload's dispatch entry."""
    titles = ("workload", "parameters")
    table = _table("chosen configuration", titles, left=titles)
    for entry in result.dispatch:
        _add_row(table, entry.workload, configuration_text(entry.configuration))
    return table


def comparison_rows(result: JobResult) -> Iterator[tuple[str, ...]]:
    """Cells of `comparison_table`, shared with the HTML report."""
    chosen = {entry.workload: entry.configuration for entry in result.dispatch}
    for c in result.comparisons:
        yield (
            c.workload,
            f"{c.baseline_us:.2f}",
            f"{c.best_us:.2f}",
            f"{c.speedup.estimate:.2f}x",
            f"{c.speedup.low:.2f} to {c.speedup.high:.2f}",
            c.verdict.value,
            configuration_text(chosen.get(c.workload)),
        )
    for n in result.no_gain:
        times = f"{n.baseline_us:.2f}", f"{n.best_us:.2f}", f"{n.baseline_us / n.best_us:.2f}x"
        yield n.workload, *times, "in the search", "no gain", configuration_text(None)


def energy_table(result: JobResult) -> "Table | None":
    """Energy per launch by workload; None if none was measured."""
    rows = list(energy_rows(result))
    if not rows:
        return None
    titles = ("workload", "baseline mJ", "best mJ", "saved", "runs differ by", "no other beats")
    table = _table("energy of a launch", titles, left=("workload", "no other beats"))
    for row in rows:
        _add_row(table, *row)
    return table


def energy_rows(result: JobResult) -> Iterator[tuple[str, ...]]:
    """Cells of `energy_table`, shared with the HTML report."""
    for c in result.comparisons:
        if c.baseline_mj is None or c.best_mj is None:
            continue
        names = {"baseline": "baseline", c.configuration_key: "best"}
        yield (
            c.workload,
            f"{c.baseline_mj:.3g}",
            f"{c.best_mj:.3g}",
            f"{100 * (1 - c.best_mj / c.baseline_mj):.1f} %",
            f"{100 * (c.energy_spread or 0.0):.1f} %",
            ", ".join(names.get(key, key) for key in c.pareto),
        )


def energy_words(result: JobResult) -> str:
    """Reason why a CUDA result lacks energies, in a sentence; empty if it has some, or compares nothing."""
    measurable = result.comparisons and result.job.kernel.backend.language.runs_on_nvidia
    if not measurable or list(energy_rows(result)):
        return ""
    if result.job.objective.measures_energy:
        return "Energy was not measured: the device does not report it."
    return "Energy was not measured: the job did not ask for it (objective.energy)."


def outcome_table(result: JobResult) -> "Table":
    """Trials by outcome, with the reasons of rejections."""
    table = _table("trials by outcome", ("outcome", "count", "reason"), left=("outcome", "reason"))
    _add_row(table, "measured", str(result.trials_measured), f"{result.trials_per_second:.2f} trials/s")
    if result.trials_cut_short:
        words = "hopeless: not run on every workload, or their energy not measured"
        _add_row(table, "cut short", str(result.trials_cut_short), words)
    for r in result.rejections:
        _add_row(table, f"rejected: {r.stage}", str(r.count), r.reason[:160])
    return table


def _table(title: str, titles: Sequence[str], left: Sequence[str] = ("workload",)) -> "Table":
    # A page reads the same rows without a terminal's tables.
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for name in titles:
        table.add_column(name, justify="left" if name in left else "right", overflow="fold")
    return table


def _add_row(table: "Table", *cells: str) -> None:
    """Add cells as plain text: a compiler's `x[i]` is no markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))


def configuration_text(configuration: Configuration | None) -> str:
    """A configuration as `BLOCK=128 VEC=4`; the baseline if None."""
    if configuration is None:
        return "baseline kept"
    return " ".join(f"{name}={value}" for name, value in configuration.items())
