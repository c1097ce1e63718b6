"""`export`: a result in a form that another program builds in."""

from pathlib import Path

from warpsmith.cli.out_folder import require_folder
from warpsmith.cli.output import echo
from warpsmith.cli.service_commands import connect
from warpsmith.http_models import JobResult
from warpsmith.report.bundle import read_result
from warpsmith.report.exports import write_export
from warpsmith.report.tables import has_gain


def export(job: str, form: str, out: Path, url: str) -> None:
    """Export a result folder, or a job of a service.

    Raises:
        InvalidInput: the folder has no result, or the format cannot hold it; or `out` can be no folder.
    """
    require_folder(out)
    result = _result(job, url)
    for path in write_export(result, form, out):
        echo(f"wrote {path}", err=True)
    if not has_gain(result):
        echo("note: the job gained nothing; the export holds the kernel as it was", err=True)


def _result(job: str, url: str) -> JobResult:
    if not Path(job).is_dir():
        with connect(url) as client:
            return client.result(job)
    return read_result(Path(job))
