"""The status of a job: as lines, and as a display that is updated while it runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from warpsmith.http_models import JobStatus
from warpsmith.system.printable import one_line


def status_lines(status: JobStatus) -> list[str]:
    """A status as plain lines."""
    best = "" if status.best_speedup is None else f", best {status.best_speedup:.2f}x"
    left = "" if status.seconds_left is None else f", {status.seconds_left:.0f} s left"
    lines = [
        f"{status.id} {status.name}: {status.state.value}, round {status.round}/{status.rounds}, "
        f"{status.trials_done}/{status.trials_budget} trials ({status.trials_rejected} rejected){best}{left}"
    ]
    if status.detail:
        lines.append(f"  {one_line(status.detail)}")
    if status.reason is not None:
        said = (status.reason.sentence, status.reason.search)
        lines += [f"  {one_line(line)}" for line in said if line and line != status.detail]
    lines += [
        f"  {w.workload}: {w.baseline_us:.2f} µs"
        + (f" → {w.best_us:.2f} µs ({w.speedup:.2f}x)" if w.best_us and w.speedup else "")
        for w in status.workloads
        if w.baseline_us is not None
    ]
    return lines


@contextmanager
def live_panel(console: Console) -> Iterator[Callable[[JobStatus], None]]:
    """Context with a function that updates the panel of a job on a terminal."""
    with Live(console=console, refresh_per_second=4) as live:
        yield lambda status: live.update(status_panel(status))


def status_panel(status: JobStatus) -> Group:
    """A status as a bar of its trials and a table of its workloads."""
    head = Text.assemble((status.name, "bold"), f"  {status.state.value}", ("  " + status.detail, "dim"))
    bar = ProgressBar(total=max(1, status.trials_budget), completed=status.trials_done, width=40)
    left = "" if status.seconds_left is None else f"{status.seconds_left:.0f} s left"
    feasible = "" if status.feasible is None else f"of {status.feasible} feasible"
    counts = Table.grid(padding=(0, 2))
    counts.add_row(
        bar,
        f"{status.trials_done}/{status.trials_budget} trials {feasible}",
        f"{status.trials_rejected} rejected",
        f"round {status.round}/{status.rounds}",
        left,
    )
    table = Table(box=None, padding=(0, 2))
    for title in ("workload", "baseline µs", "best so far µs", "speed-up"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for w in status.workloads:
        table.add_row(
            w.workload,
            "" if w.baseline_us is None else f"{w.baseline_us:.2f}",
            "" if w.best_us is None else f"{w.best_us:.2f}",
            "" if w.speedup is None else f"{w.speedup:.2f}x",
        )
    return Group(head, counts, table)
