"""The whole service on this machine, as long as one caller needs it, and jobs that it goes on with."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from warpsmith import applications, extras
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import StorageUnusable, Unavailable
from warpsmith.extensions.clients.client import Client
from warpsmith.http_models import JobStatus
from warpsmith.processes.parent_death import PARENT
from warpsmith.settings import settings
from warpsmith.system.own_files import own_file, own_folder
from warpsmith.system.storage_errors import require_room, usable_storage

READY_S = 60.0
STOP_S = 25.0
STORAGE_UNUSABLE = 2
"""Exit status of a service whose data folder cannot be used; the last line of its log says why."""


@contextmanager
def embedded_service(
    data_dir: Path, key: str | None = None, hurry_with: Callable[[Callable[[], None]], None] | None = None
) -> Iterator[Client]:
    """Context with a client of a service of its own, which ends with the context or with this process.

    Args:
        data_dir: folder of its database and logs; what was interrupted there goes on.
        key: API key that the client presents.
        hurry_with: is given what ends the service at once, for a signal during the end.

    Raises:
        Unavailable: the service cannot start here.
        StorageUnusable: the folder, or the database in it, cannot be used.
    """
    extras.require_embedded(settings())
    folder = data_dir.absolute()
    log_path = folder / "service.log"
    with usable_storage(folder):
        own_folder(folder)
        require_room(folder)
        own_file(log_path)
    port = _free_port()
    # Ctrl-C in a terminal reaches this process only; if it is killed, the kernel ends the service.
    environment = os.environ | {"WARPSMITH_DATA_DIR": str(folder), PARENT: str(os.getpid())}
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            applications.command("warpsmith", "serve", "--embedded", "--port", str(port)),
            env=applications.environment(environment),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        if hurry_with is not None:
            hurry_with(partial(_kill, process))
        with Client(f"http://127.0.0.1:{port}", key) as client:
            _wait_ready(client, process, log_path)
            yield client
    finally:
        _end(process)


def submit_or_resume(client: Client, job: Job) -> JobStatus:
    """Submit a job. An equal one that was interrupted goes on; if it has ended, the job is a new one."""
    content = hashlib.sha256(job.model_dump_json().encode()).hexdigest()[:40]
    for run in count(1):
        status = client.submit(job, f"tune-{content}-{run}")
        if not status.state.is_terminal:
            break
    return status


def _wait_ready(client: Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    lacking = "it has not answered yet"
    while time.monotonic() < deadline and process.poll() is None:
        lacking = client.ready()
        if not lacking:
            return
        time.sleep(0.1)
    lines = log.read_text(errors="replace").splitlines()
    if process.poll() == STORAGE_UNUSABLE and lines:
        raise StorageUnusable(lines[-1].removeprefix("error: "))
    tail = "\n".join(lines[-15:])
    raise Unavailable(f"the embedded service did not start: {lacking}\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.terminate()
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.wait()
    except BaseException:
        # A second Ctrl-C.
        _kill(process)
        process.wait()
        raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the service and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
