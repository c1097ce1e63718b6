"""`tune`: the whole service on this machine for one job, over HTTP like any other client."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from warpsmith import applications
from warpsmith.cli.checked_job import checked_job
from warpsmith.cli.interrupts import Interrupted, Interrupts, interrupts
from warpsmith.cli.out_folder import require_folder, result_kept
from warpsmith.cli.output import echo
from warpsmith.cli.service_commands import connect
from warpsmith.cli.terminal_views import follow, print_report
from warpsmith.client import Client
from warpsmith.domain.job import Job
from warpsmith.domain.state import JobState
from warpsmith.errors import Unavailable
from warpsmith.http_models import JobStatus
from warpsmith.jobfile import JobFile
from warpsmith.own_files import own_file, own_folder
from warpsmith.parent_death import PARENT
from warpsmith.report.bundle import write_bundle
from warpsmith.settings import settings
from warpsmith.temporary_folder import temporary_folder

READY_S = 60.0
STOP_S = 25.0


@temporary_folder()
def tune(path: Path, out: Path, include_dirs: Sequence[Path] = (), checks: bool = True) -> int:
    """Tune one job file; returns the exit code, 128 plus the number of a signal that ended it.

    Args:
        include_dirs: searched for headers, besides the folders that the job file names.
        checks: check the job against its source before anything starts.

    Raises:
        InvalidInput: the job is wrong, or `out` can be no folder.
    """
    require_folder(out)
    file = JobFile.read(path, include_dirs)
    job = checked_job(file, checks)
    with interrupts() as signals:
        try:
            return _tune(file, job, out, signals)
        except Interrupted as exc:
            # The terminal may have ended.
            with contextlib.suppress(OSError):
                echo("interrupted; the same command goes on", err=True)
            return exc.exit_code


def _tune(file: JobFile, job: Job, out: Path, signals: Interrupts) -> int:
    with _service(signals) as client, file.naming_lines():
        status = _submit(client, job)
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


def _submit(client: Client, job: Job) -> JobStatus:
    """Submit the job; the same file resumes an interrupted job, otherwise it is a new one."""
    content = hashlib.sha256(job.model_dump_json().encode()).hexdigest()[:40]
    for run in count(1):
        status = client.submit(job, f"tune-{content}-{run}")
        if not status.state.is_terminal:
            break
    return status


@contextmanager
def _service(signals: Interrupts) -> Iterator[Client]:
    data_dir = settings().data_dir.absolute()
    own_folder(data_dir)
    port = _free_port()
    # Ctrl-C in a terminal reaches this process only; if it is killed, the kernel ends the service.
    environment = os.environ | {"WARPSMITH_DATA_DIR": str(data_dir), PARENT: str(os.getpid())}
    log_path = data_dir / "service.log"
    own_file(log_path)
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            applications.command("warpsmith", "serve", "--embedded", "--port", str(port)),
            env=applications.environment(environment),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    signals.hurry_with(partial(_kill, process))
    client = connect(f"http://127.0.0.1:{port}")
    try:
        _wait_ready(client, process, log_path)
        yield client
    finally:
        client.close()
        _end(process)


def _wait_ready(client: Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    lacking = "it has not answered yet"
    while time.monotonic() < deadline and process.poll() is None:
        lacking = client.ready()
        if not lacking:
            return
        time.sleep(0.1)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise Unavailable(f"the embedded service did not start: {lacking}\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the service and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
