"""Options, arguments and groups that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

IncludeDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "-I",
        help="Folder that is searched for headers, and from which the job may name files. "
        "May be given again.",
        exists=True,
        file_okay=False,
    ),
]
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

START, SERVICE, FLEET = "Start here", "Service", "Fleet"
"""Groups of commands in the help, in this order."""
