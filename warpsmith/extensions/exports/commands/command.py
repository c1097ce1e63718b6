"""`export`: a result in a form that another program builds in."""

from collections.abc import Sequence
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.extensions.clients.commands.out_folder import require_folder
from warpsmith.extensions.clients.commands.service_commands import connect
from warpsmith.extensions.exports.tables.engine_options import table_options
from warpsmith.extensions.exports.wanted import ExportRequest, OtherDevice
from warpsmith.extensions.exports.write import write_export
from warpsmith.http_models import JobResult, TrialView
from warpsmith.report.bundle import read_result, read_trials
from warpsmith.report.tables import has_gain


def export(
    jobs: Sequence[str],
    form: str,
    out: Path,
    url: str,
    name: str,
    other_device: OtherDevice,
    table: Sequence[str] | None = None,
) -> None:
    """Export a result folder, or a job of a service; several are parts of one table of an engine.

    Args:
        name: of the function; empty: that of the entry.
        other_device: what another device than the one that was verified on gets.
        table: options `KEY=VALUE` of an engine's table.

    Raises:
        InvalidInput: the folder has no result, or the format cannot hold it; or `out` can be no folder.
    """
    require_folder(out)
    options = table_options(table)
    (result, trials), *others = [_found(job, url, form) for job in jobs]
    more = tuple(other for other, _ in others)
    for path in write_export(ExportRequest(result, trials, name, other_device, options, more), form, out):
        echo(f"wrote {path}", err=True)
    if not any(map(has_gain, (result, *more))):
        echo("note: the job gained nothing; the export holds the kernel as it was", err=True)


def _found(job: str, url: str, form: str) -> tuple[JobResult, tuple[TrialView, ...]]:
    """The result, and the trials if the format holds them."""
    if Path(job).is_dir():
        return read_result(Path(job)), tuple(read_trials(Path(job)))
    with connect(url) as client:
        return client.result(job), tuple(client.trials(job)) if form == "t4" else ()
