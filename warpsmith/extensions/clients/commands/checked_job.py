"""The job in the form that `submit` and `tune` send. Errors visible in its source are reported before
anything starts."""

from warpsmith.cli.output import echo
from warpsmith.domain.jobs.job import Job
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.job_files.jobfile import InvalidJob, JobFile, placed


def checked_job(file: JobFile, checks: bool = True) -> Job:
    """The job of a file. Warnings are printed to stderr.

    Args:
        checks: check the source as well; False for a source that the parser misreads.

    Raises:
        InvalidJob: the fields that are wrong, in the order of the file.
    """
    job = file.job()
    findings = file.located(source_findings(job)) if checks else []
    errors = [f for f in findings if f.is_error]
    if errors:
        raise InvalidJob(file.path, errors)
    for warning in findings:
        echo(f"warning: {placed(file.path, warning)}", err=True)
    return job
