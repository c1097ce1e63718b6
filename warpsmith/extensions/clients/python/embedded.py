"""The whole service on this machine, as long as one caller needs it, and jobs that it goes on with."""

import atexit
import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from warpsmith import applications, extras
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
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


@dataclass(frozen=True)
class _Service:
    """A service that runs as a child of this process."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path
    surroundings: tuple[object, ...]
    """The process and the settings that it was started with."""


_idle: dict[Path, _Service] = {}
"""Services that wait for the next call, by the folder of their database."""


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
    service = _start(data_dir.absolute())
    try:
        if hurry_with is not None:
            hurry_with(partial(_kill, service.process))
        with Client(service.url, key) as client:
            _wait_ready(client, service.process, service.log)
            yield client
    finally:
        _end(service.process)


@contextmanager
def kept_service(data_dir: Path, key: str | None = None) -> Iterator[Client]:
    """Context with a client of a service that is kept for the next context, or ends with this process.

    An exception in the context ends it. A second context at the same time has a service of its own. For
    arguments and errors see `embedded_service`.
    """
    folder = data_dir.absolute()
    service = _idle.pop(folder, None)
    if service is not None and not (
        service.surroundings == _surroundings() and service.process.poll() is None and service.log.exists()
    ):
        _end_own(service)
        service = None
    service = service or _start(folder)
    try:
        with Client(service.url, key) as client:
            _wait_ready(client, service.process, service.log)
            yield client
    except BaseException:
        _end(service.process)
        raise
    if _idle.setdefault(folder, service) is not service:
        _end(service.process)


@atexit.register
def end_kept() -> None:
    """End the services that are kept; not those of the process of which this one is a fork."""
    while _idle:
        _end_own(_idle.popitem()[1])


def _end_own(service: _Service) -> None:
    if service.surroundings[0] == os.getpid():
        _end(service.process)


def _surroundings() -> tuple[object, ...]:
    own = (item for item in os.environ.items() if item[0].startswith("WARPSMITH_"))
    return (os.getpid(), *sorted(own))


def _start(folder: Path) -> _Service:
    extras.require_embedded(settings())
    log_path = folder / "service.log"
    with usable_storage(folder):
        own_folder(folder)
        require_room(folder)
        own_file(log_path)
    port = _free_port()
    # Ctrl-C in a terminal reaches this process only; if it is killed, the kernel ends the service.
    environment = os.environ | {"WARPSMITH_DATA_DIR": str(folder), PARENT: str(os.getpid())}
    started: SimpleQueue[subprocess.Popen[bytes] | Exception] = SimpleQueue()

    def keep() -> None:
        try:
            with log_path.open("ab") as log:
                process = subprocess.Popen(
                    applications.command("warpsmith", "serve", "--embedded", "--port", str(port)),
                    env=applications.environment(environment),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except Exception as exc:  # noqa: BLE001  raised in the caller's thread
            started.put(exc)
            return
        started.put(process)
        process.wait()

    # The kernel ties the service to the thread that starts it, and the caller's may end before this process.
    threading.Thread(target=keep, name="embedded-service", daemon=True).start()
    process = started.get()
    if isinstance(process, Exception):
        raise process
    return _Service(process, f"http://127.0.0.1:{port}", log_path, _surroundings())


def submit_or_resume(client: Client, job: Job, *, check: bool = True, anew: bool = True) -> JobStatus:
    """Submit a job. An equal one that was interrupted goes on; if it has ended, the job is a new one.

    Args:
        anew: False: one that has ended well is taken for this one.
    """
    content = hashlib.sha256(job.model_dump_json().encode()).hexdigest()[:40]
    for run in count(1):
        status = client.submit(job, f"tune-{content}-{run}", check=check)
        if not status.state.is_terminal or (status.state is JobState.DONE and not anew):
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
