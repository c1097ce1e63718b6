"""`warpsmith`: the commands. `warpsmith --help` lists them.

Exit codes: 0 well; 1 the job failed or was cancelled; 2 wrong input, or a data folder that cannot be used;
3 the service cannot be reached or something is missing on this machine; 128 and a signal's number where that
has ended it.
"""

import re
import sys
from typing import Annotated, Any

import typer

from warpsmith.cli.keys import keys
from warpsmith.cli.output import echo
from warpsmith.cli.shared_options import FLEET, START, AsJson, IncludeDirs, JobFile
from warpsmith.commit import commit_name, version_text
from warpsmith.errors import InvalidInput, NotFound, StorageUnusable, Unavailable, WarpsmithError
from warpsmith.extras import naming_extras
from warpsmith.job_files.jobfile import InvalidJob, placed
from warpsmith.registry import Kind, load_all
from warpsmith.version import __version__

NAME = "warpsmith"
"""Name under which a shell knows this program, however it was started: completion asks for it."""

app = typer.Typer(
    name=NAME,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Tune GPU kernels: templates, constrained search, measured evidence.",
)

for add in load_all(Kind.COMMANDS):
    add(app)


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


@app.command(rich_help_panel=START)
def doctor(as_json: AsJson = False) -> None:
    """Check this machine for devices, compilers and services. Exit code 1 if nothing can be tuned here."""
    from warpsmith.cli import doctor as run
    from warpsmith.settings import settings

    found = run.diagnose(settings())
    if as_json:
        echo(found.model_dump_json(indent=1))
    else:
        run.show(found)
    raise typer.Exit(0 if found.can_tune else 1)


@app.command(rich_help_panel=START)
def validate(
    job: JobFile,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile it too, as it is and as a template; launch it once.")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List why other rules do not apply.")] = False,
    arch: Annotated[
        str,
        typer.Option(help="Architecture to compile for: of CUDA without a GPU, or gfx942 of AMD for HIP."),
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
        run.show(report, declined=rules)
    raise typer.Exit(0 if report.valid else 2)


@app.command(rich_help_panel=FLEET)
def drain(worker: Annotated[str, typer.Argument(help="Id of a worker, as `workers` shows it.")]) -> None:
    """Drain a worker: it ends its slice, returns its tasks and stops; needs the service's settings."""
    from warpsmith import applications

    workers = applications.load("db.repositories.workers").WorkerRepository
    with applications.load("db.admin.reachable").operated() as database, database.write() as session:
        host = workers(session).drain(worker).hostname
    echo(f"worker {worker} on {host} accepts no further task and stops within seconds")


@app.command(rich_help_panel=FLEET)
def migrate(
    downgrade: Annotated[str, typer.Option(help="Revision to go back to; what is newer is lost.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit code 1 if it differs.")] = False,
) -> None:
    """Bring the database of a fleet to the schema of this version; several machines may do so at once."""
    from warpsmith import applications
    from warpsmith.settings import settings

    url = settings().database_url
    if not url:
        raise Unavailable("WARPSMITH_DATABASE_URL is not set; `warpsmith serve` migrates its own database")
    schema = applications.load("db.migrate")
    with applications.load("db.admin.reachable").answering(url) as shown:
        if check:
            found = schema.differences(url)
            echo("\n".join(map(str, found)) or f"{shown} has the schema of this version")
            raise typer.Exit(1 if found else 0)
        schema.downgrade(url, downgrade) if downgrade else schema.upgrade(url)
        echo(f"{shown} is at revision {schema.current(url)}")


@app.command(rich_help_panel=FLEET)
def prune(
    older_than: Annotated[str, typer.Option(help="Age since the end in days or weeks: 90d, 12w.")],
    tenant: Annotated[str, typer.Option(help="Of this tenant; everybody's if not given.")] = "",
    winners: Annotated[bool, typer.Option("--winners", help="Those too whose winner is registered.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only.")] = False,
) -> None:
    """Delete jobs that ended long ago, with everything that is theirs; needs the service's settings."""
    from warpsmith import applications

    age = re.fullmatch(r"0*([1-9]\d{0,3})([dw])", older_than)
    if age is None:
        raise InvalidInput("--older-than", f"{older_than!r} is no age; give days or weeks, as in 90d or 12w")
    days = int(age[1]) * (7 if age[2] == "w" else 1)
    prune_jobs = applications.load("db.admin.retention").prune
    found = prune_jobs(days * 86400.0, tenant, winners=winners, dry_run=dry_run)
    words = f"jobs: {found.jobs}, trials: {found.trials}"
    echo(f"would delete {words}" if dry_run else f"deleted {words}, studies: {found.studies}")
    if found.kept:
        echo(f"kept, as the registry has winners of them: {found.kept}; --winners deletes them too")


app.add_typer(keys, name="keys", rich_help_panel=FLEET)


def _messages(exc: WarpsmithError) -> list[str]:
    """Messages of an error, one per problem of a job file."""
    return [placed(exc.path, f) for f in exc.findings] if isinstance(exc, InvalidJob) else [str(exc)]


def main(arguments: list[str] | None = None) -> None:
    """Entry point; errors become one line on stderr and an exit code."""
    try:
        with naming_extras():
            code: Any = app(args=arguments, prog_name=NAME, standalone_mode=False)
    except (InvalidInput, NotFound, StorageUnusable) as exc:
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
