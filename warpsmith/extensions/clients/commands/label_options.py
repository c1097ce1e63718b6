"""The option `--label key=value` of the commands."""

from collections.abc import Mapping, Sequence

from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import parse_job


def labels_of(given: Sequence[str] | None) -> dict[str, str]:
    """Labels by key.

    Raises:
        InvalidInput: a label is not of the form `key=value`.
    """
    found = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InvalidInput("--label", f"{text!r} is no key=value")
        found[key] = value
    return found


def labelled(job: Job, labels: Mapping[str, str]) -> Job:
    """The job with further labels, which override its own.

    Raises:
        InvalidInput: a label is not valid in a job.
    """
    return parse_job(job.model_dump(mode="json") | {"labels": {**job.labels, **labels}}) if labels else job
