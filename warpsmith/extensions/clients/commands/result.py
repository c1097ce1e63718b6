"""`result`: the evidence of a job that has ended, in the terminal and as a folder."""

from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.extensions.clients.commands.out_folder import require_folder
from warpsmith.extensions.clients.commands.service_commands import connect
from warpsmith.extensions.clients.commands.terminal_views import print_report
from warpsmith.report.bundle import write_bundle


def result(job_id: str, url: str, out: Path | None, as_json: bool) -> None:
    """Print a result, as JSON or as tables, and write its folder if one is named.

    Raises:
        InvalidInput: `out` can be no folder.
    """
    if out is not None:
        require_folder(out)
    with connect(url) as client:
        found = client.result(job_id)
        if as_json:
            echo(found.model_dump_json(indent=1))
        else:
            print_report(found)
        if out is not None:
            for path in write_bundle(found, list(client.trials(job_id)), out):
                echo(f"wrote {path}", err=True)
