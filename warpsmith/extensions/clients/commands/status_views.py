"""The status of a job: as lines, and as a display that is updated while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from warpsmith.http_models import JobStatus
from warpsmith.system.printable import one_line

LINE_EVERY_S = 10.0


def status_lines(status: JobStatus) -> list[str]:
    """A status as plain lines."""
    lines = [str(status)]
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


class ProgressLines:
    """Tells a status in a line: the last, where a wait begins or ends, and every `LINE_EVERY_S` seconds.

    Args:
        tell: is given each line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next_s = 0.0
        self._waits = False

    def __call__(self, status: JobStatus) -> None:
        now_s = time.monotonic()
        waited, self._waits = self._waits, "waits: " in status.detail
        if now_s < self._next_s and waited == self._waits and not status.state.is_terminal:
            return
        self._next_s = now_s + LINE_EVERY_S
        best = "" if status.best_speedup is None else f", best {status.best_speedup:.1f}x"
        left = f", {status.seconds_left:.0f} s left" if status.seconds_left else ""
        detail = f" - {one_line(status.detail)}" if status.detail else ""
        self._tell(f"{status.state.value}: {status.trials_done} tried{best}{left}{detail}")


@contextmanager
def live_panel(console: Console) -> Iterator[Callable[[JobStatus], None]]:
    """Context with a function that updates the panel of a job on a terminal."""
    with Live(console=console, refresh_per_second=4) as live:
        yield lambda status: live.update(status_panel(status))


def status_panel(status: JobStatus) -> Group:
    """A status as a bar of its trials and a table of its workloads."""
    head = Text.assemble((status.name, "bold"), f"  {status.state.value}", ("  " + status.detail, "dim"))
    bar = ProgressBar(total=max(1, status.trials_budget), completed=status.trials_done, width=40)
    left = f"{status.seconds_left:.0f} s left" if status.seconds_left else ""
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
