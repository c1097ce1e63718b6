"""`warpsmith`: the commands. `warpsmith --help` lists them.

Exit codes: 0 well; 1 the job failed or was cancelled; 2 wrong input; 3 the service cannot be reached or
something is missing on this machine; 128 and a signal's number where that has ended it.
"""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from warpsmith import __version__
from warpsmith.cli.keys import keys
from warpsmith.cli.output import echo
from warpsmith.cli.shared_options import IncludeDirs
from warpsmith.commit import commit_name, version_text
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput, NotFound, WarpsmithError
from warpsmith.extensions.clients.commands.lessons import lessons
from warpsmith.extensions.scaffold.command.init_command import init
from warpsmith.extras import naming_extras
from warpsmith.job_files.jobfile import InvalidJob, placed

NAME = "warpsmith"
"""Name under which a shell knows this program, however it was started: completion asks for it."""

app = typer.Typer(
    name=NAME,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Tune GPU kernels: templates, constrained search, measured evidence.",
)

START, SERVICE, FLEET = "Start here", "Service", "Fleet"
"""Groups of commands in the help, in this order."""

app.add_typer(keys, name="keys", rich_help_panel=FLEET)
app.add_typer(lessons, name="lessons", rich_help_panel=FLEET)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"{NAME} {version_text(__version__, commit_name())}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show version and commit."),
    ] = False,
) -> None:
    pass


Url = Annotated[str, typer.Option(envvar="WARPSMITH_URL", help="Where the service is.")]
JobFile = Annotated[Path, typer.Argument(help="Job file, YAML or JSON.", exists=True, dir_okay=False)]
JobId = Annotated[str, typer.Argument(help="Id of a job.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="`key=value`; may be given again.")]
Check = Annotated[bool, typer.Option(help="Check arguments and launch against the source first.")]
Tenant = Annotated[
    str, typer.Option(help="Of this tenant, or of every tenant ('*'); needs a key with the scope admin.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DEFAULT_URL = "http://127.0.0.1:8765"


@app.command(rich_help_panel=START)
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


@app.command(rich_help_panel=START)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for result.json, report.html, sources.")] = Path(),
) -> None:
    """Tune an example on this machine, on its GPU or else its CPU."""
    from warpsmith.extensions.clients.commands.demo import demo as run

    raise typer.Exit(run(out))


@app.command(rich_help_panel=START)
def doctor(as_json: AsJson = False) -> None:
    """What this machine can do, and how to get what it lacks. Exit code 1 if nothing can be tuned here."""
    from warpsmith.cli import doctor as run
    from warpsmith.settings import settings

    found = run.diagnose(settings())
    if as_json:
        echo(found.model_dump_json(indent=1))
    else:
        run.show(found)
    raise typer.Exit(0 if found.can_tune else 1)


app.command(rich_help_panel=START)(init)


@app.command(rich_help_panel=START)
def validate(
    job: JobFile,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile it too, as it is and as a template; no launch.")
    ] = False,
    arch: Annotated[
        str,
        typer.Option(
            help="Architecture to compile for: of CUDA if there is no GPU, or gfx942 of AMD for HIP."
        ),
    ] = "sm_90",
    include_dirs: IncludeDirs = None,
    as_json: AsJson = False,
) -> None:
    """Check a job file without launching it: form, arguments, reference, sizes; and what would be tuned.

    Exit code 2 with errors, 0 with warnings only.
    """
    from warpsmith.cli import validate as run
    from warpsmith.settings import settings

    report = run.validate(job, run.Wishes(settings(), compile_, arch, tuple(include_dirs or ())))
    if as_json:
        echo(run.as_json(report))
    else:
        run.show(report)
    raise typer.Exit(0 if report.valid else 2)


@app.command(rich_help_panel=SERVICE)
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


@app.command(rich_help_panel=FLEET)
def worker(
    queues: Annotated[str, typer.Option(help="control, agents, webhooks, compile, gpu, gpu.<class>")] = "",
    concurrency: Annotated[int, typer.Option(help="Processes for work without a device; 0: two.")] = 0,
) -> None:
    """Run a worker on this machine, with every device found here."""
    from warpsmith.extensions.clients.commands.service_commands import worker as run

    run([q for q in queues.split(",") if q], concurrency)


@app.command(rich_help_panel=SERVICE)
def mcp(url: Url = DEFAULT_URL) -> None:
    """Give an agent on this machine the service's tools (Model Context Protocol, over stdin and stdout)."""
    from warpsmith.extensions.clients.commands.service_commands import agent_tools

    agent_tools(url)


@app.command(rich_help_panel=SERVICE)
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
    from warpsmith.cli.checked_job import checked_job
    from warpsmith.extensions.clients.commands.label_options import labelled, labels_of
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.job_files.jobfile import JobFile

    file = JobFile.read(job, include_dirs or ())
    with connect(url) as client, file.naming_lines():
        status = client.submit(labelled(checked_job(file, check), labels_of(label)), key, priority)
    echo(status.id)
    if status.state is JobState.QUEUED and status.detail:
        echo(f"warning: {status.detail}", err=True)


@app.command(rich_help_panel=SERVICE)
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


@app.command(rich_help_panel=SERVICE)
def status(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Status of a job."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.report.status_views import status_lines

    with connect(url) as client:
        found = client.status(job_id)
    echo(found.model_dump_json(indent=1) if as_json else "\n".join(status_lines(found)))


@app.command(rich_help_panel=SERVICE)
def definition(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """A job as it was submitted, as JSON: a job file to change and submit again."""
    from warpsmith.extensions.clients.commands.service_commands import connect

    with connect(url) as client:
        echo(client.definition(job_id).model_dump_json(indent=1))


@app.command(rich_help_panel=SERVICE)
def watch(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """Follow a job until it ends."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.extensions.clients.commands.terminal_views import follow

    with connect(url) as client:
        raise typer.Exit(0 if follow(client, job_id).state.value == "done" else 1)


@app.command(rich_help_panel=SERVICE)
def result(
    job_id: JobId,
    url: Url = DEFAULT_URL,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json, report.html, sources.")] = None,
    as_json: AsJson = False,
) -> None:
    """The evidence of a job that has ended."""
    from warpsmith.extensions.clients.commands.result import result as run

    run(job_id, url, out, as_json)


@app.command(rich_help_panel=SERVICE)
def export(
    job: Annotated[str, typer.Argument(help="Result folder, or id of a job.")],
    out: Annotated[Path, typer.Option(help="Folder for the export.")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            help="Format: c, cpp, torch, tvm-ffi, hf-kernel, sglang, flashinfer-bench, t4, or a table for an "
            "engine: vllm-config, sglang-config, hf-config.",
        ),
    ] = "c",
    name: Annotated[str, typer.Option(help="Name of the function; by default that of the entry.")] = "",
    other_device: Annotated[
        Literal["fallback", "error"],
        typer.Option(help="What another device than the tuned one gets: your own kernel, or an error."),
    ] = "fallback",
    table: Annotated[
        list[str] | None,
        typer.Option(help="`KEY=VALUE` of an engine's table, such as E=8; may be given again."),
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """A result in a form that a program uses, with dispatch over shapes and its evidence."""
    from warpsmith.extensions.exports.command import export as run

    run(job, form, out, url, name, other_device, table)


@app.command(rich_help_panel=SERVICE)
def prove(
    command: Annotated[list[str], typer.Argument(help="Your own command, after `--`.")],
    export_: Annotated[Path, typer.Option("--export", help="Folder that `export` wrote.")],
    pairs: Annotated[int, typer.Option(help="Runs without and with it, at least 5.")] = 8,
    metric: Annotated[
        str,
        typer.Option(help="Expression with one group: a number in the output, instead of its seconds."),
    ] = "",
    more_is_better: Annotated[bool, typer.Option("--more-is-better", help="Of that number.")] = False,
    outputs: Annotated[
        Path | None, typer.Option(help="File that the command writes, to be compared.")
    ] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of a .npy file.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Your own command with and without an export, in turns: the gain, its interval, equal outputs."""
    from warpsmith.extensions.exports.prove import Wanted
    from warpsmith.extensions.exports.prove_command import prove as run

    wanted = Wanted(export_, command, pairs, metric, more_is_better, outputs, rtol)
    raise typer.Exit(run(wanted, as_json))


@app.command(rich_help_panel=SERVICE)
def recheck(job_id: JobId, url: Url = DEFAULT_URL) -> None:
    """Measure the winners of an old job again; says what changed. Exits with 1 unless every gain holds."""
    from warpsmith.extensions.clients.commands.recheck import recheck as run

    raise typer.Exit(0 if run(job_id, url) else 1)


@app.command(rich_help_panel=SERVICE)
def cancel(job_id: JobId, url: Url = DEFAULT_URL, tenant: Tenant = "") -> None:
    """End a job."""
    from warpsmith.extensions.clients.commands.service_commands import connect

    with connect(url) as client:
        ended = client.cancel(job_id, tenant)
    echo(ended.state.value + (f" (of {ended.tenant})" if ended.tenant else ""))


@app.command(rich_help_panel=SERVICE)
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


@app.command(rich_help_panel=FLEET)
def workers(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Workers, their devices, and what they cannot use."""
    from warpsmith.cli.hip_words import HIP_ON_NVIDIA, NOT_ON_AMD
    from warpsmith.extensions.clients.commands.service_commands import connect

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
            echo(f"    {backend}: {reason}")
    if any(name.startswith(("cuda-", "hip-")) for item in found.items for name in item.devices):
        echo(f"{HIP_ON_NVIDIA}; {NOT_ON_AMD}")


@app.command(rich_help_panel=FLEET)
def drain(worker: Annotated[str, typer.Argument(help="Id of a worker, as `workers` shows it.")]) -> None:
    """Drain a worker: it ends its slice, returns its tasks and stops; needs the service's settings."""
    from warpsmith import applications

    host = applications.load("db.admin.worker_admin").drain(worker)
    echo(f"worker {worker} on {host} accepts no further task and stops within seconds")


def _messages(exc: WarpsmithError) -> list[str]:
    """One message per problem of a job file."""
    return [placed(exc.path, f) for f in exc.findings] if isinstance(exc, InvalidJob) else [str(exc)]


def main(arguments: list[str] | None = None) -> None:
    """Entry point; errors become one line on stderr and an exit code."""
    try:
        with naming_extras():
            code: Any = app(args=arguments, prog_name=NAME, standalone_mode=False)
    except (InvalidInput, NotFound) as exc:
        echo("\n".join(f"error: {line}" for line in _messages(exc)), err=True)
        code = 2
    except WarpsmithError as exc:
        echo(f"error: {exc}", err=True)
        code = 3
    except typer.Exit as exc:
        code = exc.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except typer.TyperException as exc:
        # A call without arguments has printed the help; its message is empty.
        if message := exc.format_message():
            echo(f"error: {message}", err=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
