"""Checks of a job beyond its own form: features that this service supports, and the operator's limits."""

from sqlalchemy.orm import Session

from db.repositories.workers import WorkerRepository
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.memory import check_memory
from warpsmith.errors import InvalidInput
from warpsmith.job_checks.service_limits import service_findings
from warpsmith.settings import Settings


def check_job(job: Job, settings: Settings) -> None:
    """Raises InvalidInput for the first field that this service cannot accept."""
    for found in service_findings(job, settings):
        raise InvalidInput(found.field, found.message)


def check_room(session: Session, job: Job, settings: Settings) -> None:
    """Raises InvalidInput if no known device has enough memory, or if the operator permits less."""
    if not job.kernel.backend.language.is_recorded:
        devices = WorkerRepository(session).of_backend(job.kernel.backend.value)
        check_memory(job, devices, settings.job_memory_bytes)
