"""`warpsmith recheck`: an old result under today's driver and compiler."""

from warpsmith.cli.output import echo
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.commands.recheck_changes import changes, environment_lines, recheck_job
from warpsmith.extensions.clients.commands.service_commands import connect
from warpsmith.extensions.clients.commands.terminal_views import follow


def recheck(job_id: str, url: str) -> bool:
    """Measure the winners of a job again and say what changed; True if every gain still holds.

    Raises:
        InvalidInput: the job has no winner, or the new job did not end well.
    """
    with connect(url) as client:
        old = client.result(job_id)
        status = client.submit(recheck_job(old))
        echo(f"job {status.id} checks {job_id} again", err=True)
        ended = follow(client, status.id)
        if ended.state is not JobState.DONE:
            raise InvalidInput(
                "job", f"{status.id}, which checks it again, is {ended.state.value}: {ended.detail}"
            )
        new = client.result(status.id)
        tried = [trial.configuration for trial in client.trials(status.id) if trial.outcome is not None]
    found = changes(old, new, tried)
    for line in (*environment_lines(old, new), *(change.words for change in found)):
        echo(line)
    return all(change.serves for change in found)
