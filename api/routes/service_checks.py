"""Checks of a job before it is accepted: supported features, limits of devices, the job's sources."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from db.engine import Database
from db.repositories.workers import WorkerRepository
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.job_checks.all_findings import known_findings, memory_findings, posted_findings
from warpsmith.job_checks.service_limits import service_findings
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob
from warpsmith.settings import Settings

MOST_CHARACTERS = 64 << 10
"""Limit on the sources of a job that are read here; longer ones take seconds."""
WAIT_S = 5.0
Check = Callable[[Job, Settings, Sequence[DeviceInfo]], Iterable[Finding]]
_READING = threading.Semaphore(2)
"""Sources are read by this process, which serves others meanwhile."""


def devices_for(database: Database, job: Job) -> Sequence[DeviceInfo]:
    """Devices that living workers offer for the job's back end."""
    with database.read() as session:
        return WorkerRepository(session).of_backend(job.kernel.backend.value)


def check_job(
    job: Job, settings: Settings, devices: Sequence[DeviceInfo] = (), *, reads: bool = True
) -> None:
    """Raises InvalidJob with the fields that this service cannot accept.

    Args:
        reads: read the sources as well.
    """
    errors = [f for f in _found(job, settings, devices, posted_findings if reads else _unread) if f.is_error]
    if errors:
        raise InvalidJob(Path("job"), errors)


def all_findings(job: Job, settings: Settings, database: Database) -> list[Finding]:
    """Everything that this service can say of a job before it runs, warnings included."""
    return _found(job, settings, devices_for(database, job), known_findings)


def _found(job: Job, settings: Settings, devices: Sequence[DeviceInfo], check: Check) -> list[Finding]:
    """The findings of a check, or those without the sources if reading them would keep others waiting."""
    characters = sum(map(len, (job.kernel.source or "", *job.kernel.files.values())))
    if characters > MOST_CHARACTERS or not _READING.acquire(timeout=WAIT_S):
        return list(_unread(job, settings, devices))
    try:
        return list(check(job, settings, devices))
    finally:
        _READING.release()


def _unread(job: Job, settings: Settings, devices: Sequence[DeviceInfo]) -> Iterator[Finding]:
    yield from service_findings(job, settings)
    yield from memory_findings(job, settings, devices)
    words = f"not read: longer than {MOST_CHARACTERS} characters, or others are read; a worker reads it"
    yield Finding("kernel.source", words, is_error=False)
