"""`warpsmith lessons`: what jobs taught, from one service to another."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from warpsmith.cli.output import echo
from warpsmith.cli.shared_options import DEFAULT_URL, Url
from warpsmith.errors import InvalidInput

lessons = typer.Typer(no_args_is_help=True, help="What jobs taught, from one service to another.")


@lessons.command("export")
def export_lessons(
    file: Annotated[Path, typer.Argument(dir_okay=False, help="File to write, one lesson a line.")],
    url: Url = DEFAULT_URL,
) -> None:
    """Write the tenant's lessons to a file. It holds kernels and their templates."""
    from warpsmith.extensions.clients.commands.service_commands import connect

    written = 0
    with connect(url) as client, file.open("w", encoding="utf-8") as out:
        for lesson in client.lessons():
            out.write(lesson.model_dump_json(exclude_unset=True) + "\n")
            written += 1
    echo(f"{file}: {written} lessons")


@lessons.command("import")
def import_lessons(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File that `export` wrote.")],
    url: Url = DEFAULT_URL,
) -> None:
    """Hand the lessons of a file to a service. Those that it has stay as they are."""
    from warpsmith.extensions.clients.commands.service_commands import connect
    from warpsmith.http_models import JobLesson

    read = []
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                read.append(JobLesson.model_validate_json(line))
            except ValidationError as exc:
                first = exc.errors(include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"]) or "the line"
                raise InvalidInput(
                    f"{file}:{number}", f"{where}: {first['msg']}; nothing was imported"
                ) from exc
    with connect(url) as client:
        new = sum(client.teach(lesson).new for lesson in read)
    echo(f"{url}: {new} new lessons of {len(read)}")
