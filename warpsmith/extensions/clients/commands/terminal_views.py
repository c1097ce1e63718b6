"""Terminal output: progress, and the report."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial

from rich.text import Text

from warpsmith.cli.output import echo
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.clients.commands.status_views import ProgressLines, live_panel, status_lines
from warpsmith.http_models import EventView, JobResult, JobStatus
from warpsmith.report.safe_console import SafeConsole
from warpsmith.report.tables import (
    baseline_table,
    chosen_table,
    comparison_table,
    energy_table,
    energy_words,
    has_gain,
    outcome_table,
    reason_lines,
)
from warpsmith.system.printable import one_line


def listed_line(status: JobStatus) -> str:
    """A job as one line of a list, with its age, its labels and, if it gained nothing, the reason."""
    labels = "".join(f" {key}={value}" for key, value in status.labels.items())
    whose = f" of {status.tenant}" if status.tenant else ""
    ended_badly = status.state in (JobState.FAILED, JobState.CANCELLED)
    why = f" - {one_line(status.detail)}" if ended_badly and status.detail else ""
    if not ended_badly and status.reason is not None and not status.reason.is_gain:
        why = f" - no gain: {status.reason.code.value.replace('_', ' ')}"
    return f"{status_lines(status)[0]}, {_age(datetime.now(UTC) - status.created_at)} old{labels}{whose}{why}"


def event_line(event: EventView) -> str:
    """An event as one line: time, kind and text."""
    said = " ".join(one_line(str(value)) for key, value in event.data.items() if value and key != "task")
    return f"{event.at:%Y-%m-%d %H:%M:%S} {event.kind} {said}"


def _age(age: timedelta) -> str:
    seconds = max(0.0, age.total_seconds())
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def follow(client: Client, job_id: str) -> JobStatus:
    """Show progress until the job ends: a live display, or occasional lines if there is no terminal."""
    console = SafeConsole(stderr=True)
    display = (
        live_panel(console) if console.is_terminal else nullcontext(ProgressLines(partial(echo, err=True)))
    )
    with display as show:
        return client.wait(job_id, show)


def print_report(result: JobResult) -> None:
    """The report on standard output."""
    console = SafeConsole()
    table = comparison_table(result)
    console.print(table if table.row_count else Text(str(table.title), "bold"))
    style = "green" if has_gain(result) else "bold"
    for line in reason_lines(result):
        console.print(line, style=style, markup=False, highlight=False)
    console.print(f"{result.device}, driver {result.driver}", style="dim", markup=False, highlight=False)
    console.print()
    measured = baseline_table(result)
    if measured is not None:
        console.print(measured)
    if result.dispatch:
        console.print(chosen_table(result))
    energy = energy_table(result)
    if energy is not None:
        console.print(energy)
    elif words := energy_words(result):
        console.print(words, style="dim", markup=False, highlight=False)
    console.print(outcome_table(result))
