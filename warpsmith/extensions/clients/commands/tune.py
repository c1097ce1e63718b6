"""`tune`: the whole service on this machine for one job, over HTTP like any other client."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.commands.checked_job import checked_job
from warpsmith.extensions.clients.commands.interrupts import Interrupted, Interrupts, interrupts
from warpsmith.extensions.clients.commands.out_folder import require_folder, result_kept
from warpsmith.extensions.clients.commands.terminal_views import follow, print_report
from warpsmith.extensions.clients.python.embedded import embedded_service, submit_or_resume
from warpsmith.job_files.jobfile import JobFile
from warpsmith.report.bundle import write_bundle
from warpsmith.settings import settings
from warpsmith.system.temporary_folder import temporary_folder


@temporary_folder()
def tune(path: Path, out: Path, include_dirs: Sequence[Path] = (), checks: bool = True) -> int:
    """Tune one job file; returns the exit code, 128 plus the number of a signal that ended it.

    Args:
        include_dirs: searched for headers, besides the folders that the job file names.
        checks: check the job against its source before anything starts.

    Raises:
        InvalidInput: the job is wrong, or `out` can be no folder.
        Unavailable: a library of the embedded mode is missing.
    """
    require_folder(out)
    file = JobFile.read(path, include_dirs)
    job = checked_job(file, checks)
    with interrupts() as signals:
        try:
            return _tune(file, job, out, signals, checks)
        except Interrupted as exc:
            # The terminal may have ended.
            with contextlib.suppress(OSError):
                echo("interrupted; the same command goes on", err=True)
            return exc.exit_code


def _tune(file: JobFile, job: Job, out: Path, signals: Interrupts, checks: bool) -> int:
    current = settings()
    service = embedded_service(current.data_dir, current.api_key_text, signals.hurry_with)
    with service as client, file.naming_lines():
        status = submit_or_resume(client, job, check=checks)
        echo(f"job {status.id}: {job.name}", err=True)
        end = follow(client, status.id)
        if end.state is not JobState.DONE:
            echo(f"{end.state.value}: {file.placed(end.detail)}", err=True)
        with result_kept(status.id):
            result = client.result(status.id)
            print_report(result)
            for written in write_bundle(result, list(client.trials(status.id)), out):
                echo(f"wrote {written}", err=True)
    return 0 if end.state is JobState.DONE else 1
