"""Options that several commands have."""

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
