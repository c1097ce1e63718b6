"""Commands that tune on this machine or talk to a service; what they need is imported when they run."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from warpsmith.cli.output import echo
from warpsmith.cli.shared_options import (
    DEFAULT_URL,
    FLEET,
    SERVICE,
    START,
    AsJson,
    Check,
    IncludeDirs,
    JobFile,
    JobId,
    Labels,
    Tenant,
    Url,
)
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.commands.lessons import lessons


def tune(
    job: JobFile,
    out: Annotated[Path, typer.Option(help="Folder for result.json, report.html, sources.")] = Path(),
    include_dirs: IncludeDirs = None,
    check: Check = True,
) -> None:
    """Tune on this machine: starts the embedded service, submits, follows, reports.

    Interrupted and called again with the same job, it goes on where it was.
    """
    from warpsmith.extensions.clients.commands.tune import tune as run

    raise typer.Exit(run(job, out, include_dirs or (), check))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for result.json, report.html, sources.")] = Path(),
) -> None:
    """Tune an example on this machine, on its GPU or else its CPU."""
    from warpsmith.extensions.clients.commands.demo import demo as run

    raise typer.Exit(run(out))


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; loopback by default.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; 8765 by default.")] = None,
    embedded: Annotated[
        bool | None,
        typer.Option(help="Run a worker as well. Default: if neither a database nor a broker is set."),
    ] = None,
) -> None:
    """Run the service. Without a database and a broker it needs nothing else (SQLite, own worker)."""
    from warpsmith.extensions.clients.commands.service_commands import serve as run

    run(host, port, embedded)


def worker(
    queues: Annotated[str, typer.Option(help="control, agents, webhooks, compile, gpu, gpu.<class>")] = "",
    concurrency: Annotated[int, typer.Option(help="Processes for work without a device; 0: two.")] = 0,
) -> None:
    """Run a worker on this machine, with every device found here."""
    from warpsmith.extensions.clients.commands.service_commands import worker as run

    run([q for q in queues.split(",") if q], concurrency)


def mcp(url: Url = DEFAULT_URL) -> None:
    """Give an agent on this machine the service's tools (Model Context Protocol, over stdin and stdout)."""
    from warpsmith.extensions.clients.commands.service_commands import agent_tools

    agent_tools(url)


def submit(
    job: JobFile,
    url: Url = DEFAULT_URL,
    key: Annotated[str | None, typer.Option(help="Idempotency key.")] = None,
    priority: Annotated[int, typer.Option(min=-10, max=10, help="Among your jobs; higher goes first.")] = 0,
    label: Labels = None,
    include_dirs: IncludeDirs = None,
    check: Check = True,
) -> None:
    """Post a job; prints its id."""
    from warpsmith.extensions.clients.commands.checked_job import checked_job
    from warpsmith.extensions.clients.commands.label_options import labelled, labels_of
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.job_files.jobfile import JobFile

    file = JobFile.read(job, include_dirs or ())
    with connect(url) as client, file.naming_lines():
        found = labelled(checked_job(file, check), labels_of(label))
        status = client.submit(found, key, priority, check=check)
    echo(status.id)
    if status.state is JobState.QUEUED and status.detail:
        echo(f"warning: {status.detail}", err=True)


def jobs(
    url: Url = DEFAULT_URL,
    state: Annotated[
        list[JobState] | None, typer.Option(help="Jobs in this state; may be given again.")
    ] = None,
    label: Labels = None,
    name: Annotated[str, typer.Option(help="Part of the name.")] = "",
    device: Annotated[str, typer.Option(help="Jobs for this device class, as `workers` shows it.")] = "",
    since: Annotated[
        datetime | None, typer.Option(help="Jobs submitted at this local time or later.")
    ] = None,
    before: Annotated[datetime | None, typer.Option(help="Jobs submitted before this local time.")] = None,
    after: Annotated[str | None, typer.Option(help="Older than this job.")] = None,
    tenant: Tenant = "",
    as_json: AsJson = False,
) -> None:
    """Your jobs, newest first. A job must match every filter."""
    from warpsmith.extensions.clients.commands.label_options import labels_of
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.extensions.clients.commands.terminal_views import listed_line

    with connect(url) as client:
        found = client.jobs(
            after,
            state or (),
            labels=labels_of(label),
            name=name,
            device=device,
            created_from=since and since.astimezone(),
            created_before=before and before.astimezone(),
            tenant=tenant,
        )
    if as_json:
        echo(found.model_dump_json(indent=1))
        return
    for item in found.items:
        echo(listed_line(item))
    if found.next is not None:
        echo(f"more with --after {found.next}", err=True)


def status(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Status of a job."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.extensions.clients.commands.status_views import status_lines

    with connect(url) as client:
        found = client.status(job_id)
    echo(found.model_dump_json(indent=1) if as_json else "\n".join(status_lines(found)))


def definition(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """A job as it was submitted, as JSON: a job file to change and submit again."""
    from warpsmith.extensions.clients.commands.service_commands import connect

    with connect(url) as client:
        echo(client.definition(job_id).model_dump_json(indent=1))


def watch(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """Follow a job until it ends."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.extensions.clients.commands.terminal_views import follow

    with connect(url) as client:
        raise typer.Exit(0 if follow(client, job_id).state.value == "done" else 1)


def result(
    job_id: JobId,
    url: Url = DEFAULT_URL,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json, report.html, sources.")] = None,
    as_json: AsJson = False,
) -> None:
    """The evidence of a job that has ended."""
    from warpsmith.extensions.clients.commands.result import result as run

    run(job_id, url, out, as_json)


def recheck(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """Measure the winners of an old job again; says what changed. Exits with 1 unless every gain holds."""
    from warpsmith.extensions.clients.commands.recheck import recheck as run

    raise typer.Exit(0 if run(job_id, url) else 1)


def cancel(job_id: JobId, url: Url = DEFAULT_URL, tenant: Tenant = "") -> None:
    """End a job."""
    from warpsmith.extensions.clients.commands.service_commands import connect

    with connect(url) as client:
        ended = client.cancel(job_id, tenant)
    echo(ended.state.value + (f" (of {ended.tenant})" if ended.tenant else ""))


def events(
    job_id: JobId,
    url: Url = DEFAULT_URL,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """Events of a job, oldest first."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.extensions.clients.commands.terminal_views import event_line
    from warpsmith.http_models import EventView

    with connect(url) as client:
        for told in client.stream(job_id) if follow else client.events(job_id):
            if isinstance(told, EventView):
                echo(event_line(told))


def workers(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Workers, their devices, and what they cannot use."""
    from warpsmith.cli.hip_words import HIP_ON_NVIDIA, NOT_ON_AMD
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.http_models import NO_WORKER

    with connect(url) as client:
        found = client.workers()
    if as_json:
        echo(found.model_dump_json(indent=1))
        return
    for item in found.items:
        state = "alive" if item.alive else "gone"
        words = ", ".join(item.devices) or "no device"
        words += f", compiles {item.compile_slots} at once for others" if item.compile_slots else ""
        echo(f"{item.id}  {state}  {item.hostname}  {words}")
        for backend, reason in item.unavailable.items():
            echo(f"    {backend}: {reason.removeprefix(f'{backend}: ')}")
    if not any(item.alive for item in found.items):
        echo(NO_WORKER, err=True)
    if any(name.startswith(("cuda-", "hip-")) for item in found.items for name in item.devices):
        echo(f"{HIP_ON_NVIDIA}; {NOT_ON_AMD}")


COMMANDS: Mapping[str, tuple[Callable[..., None], ...]] = {
    START: (tune, demo),
    SERVICE: (serve, mcp, submit, jobs, status, definition, watch, result, recheck, cancel, events),
    FLEET: (worker, workers),
}
"""Commands by their group in the help."""


def add(app: typer.Typer) -> None:
    """Add the commands that tune here or talk to a service."""
    app.add_typer(lessons, name="lessons", rich_help_panel=FLEET)
    for group, commands in COMMANDS.items():
        for command in commands:
            app.command(rich_help_panel=group)(command)
