"""`doctor`: what this machine can do, and the way to get what it lacks."""

import platform

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpsmith.cli.diagnosis import CheckState, Diagnosis, concluded
from warpsmith.cli.installation_checks import installation_checks
from warpsmith.cli.machine_checks import machine_checks
from warpsmith.commit import commit_name, version_text
from warpsmith.report.safe_console import SafeConsole
from warpsmith.settings import Settings
from warpsmith.system.temporary_folder import temporary_folder
from warpsmith.version import __version__

_STYLES = {CheckState.OK: "green", CheckState.MISSING: "red", CheckState.NOT_USED: "dim"}


@temporary_folder()
def diagnose(settings: Settings) -> Diagnosis:
    """Look at everything; drivers and compilers are asked in child processes."""
    checks = [*machine_checks(settings), *installation_checks(settings)]
    return concluded(__version__, commit_name(), platform.python_version(), checks)


def show(found: Diagnosis, console: Console | None = None) -> None:
    """The diagnosis as a table on standard output."""
    shown = console or SafeConsole()
    version = version_text(found.version, found.commit)
    table = Table(title=f"warpsmith {version}, Python {found.python}", title_justify="left")
    for title in ("what", "state", "found", "to get it"):
        table.add_column(title, overflow="fold")
    for check in found.checks:
        state = Text(check.state.value, _STYLES[check.state])
        table.add_row(check.subject, state, Text(check.detail), Text(check.remedy))
    shown.print(table)
    words, style = f"No kernel can be tuned here: {found.reason}", "bold red"
    if found.can_tune:
        words, style = f"Ready: kernels can be tuned here ({found.reason}).", "bold green"
    shown.print(words, style=style, markup=False, highlight=False)
