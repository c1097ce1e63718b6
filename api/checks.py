"""What a job must keep to beyond its own form: what this service supports and permits."""

from warpsmith.checks.service import service_findings
from warpsmith.domain.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.settings import Settings


def check_job(job: Job, settings: Settings) -> None:
    """Raises InvalidInput for the first field that this service cannot accept."""
    for found in service_findings(job, settings):
        raise InvalidInput(found.field, found.message)
