"""A job as `submit` and `tune` send it: what its source shows to be wrong is told before anything starts."""

from warpsmith.domain.job import Job
from warpsmith.job_checks.launch import launch_findings
from warpsmith.job_checks.signature import signature_findings
from warpsmith.jobfile import InvalidJob, JobFile


def checked_job(file: JobFile, checks: bool = True) -> Job:
    """The job of a file.

    Args:
        checks: look at the source as well; False for a source that the parse takes wrongly.

    Raises:
        InvalidJob: what is wrong with which field, in the order of the file.
    """
    job = file.job()
    findings = [f for f in (*signature_findings(job), *launch_findings(job)) if f.is_error] if checks else []
    if findings:
        raise InvalidJob(file.path, file.located(findings))
    return job
