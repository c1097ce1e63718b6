"""The job in the form that `submit` and `tune` send. Errors visible in its source are reported before
anything starts."""

from warpsmith.domain.job import Job
from warpsmith.job_checks.launch import launch_findings
from warpsmith.job_checks.signature import signature_findings
from warpsmith.jobfile import InvalidJob, JobFile


def checked_job(file: JobFile, checks: bool = True) -> Job:
    """The job of a file.

    Args:
        checks: check the source as well; False for a source that the parser misreads.

    Raises:
        InvalidJob: the fields that are wrong, in the order of the file.
    """
    job = file.job()
    findings = [f for f in (*signature_findings(job), *launch_findings(job)) if f.is_error] if checks else []
    if findings:
        raise InvalidJob(file.path, file.located(findings))
    return job
