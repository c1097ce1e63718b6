"""The command `init` on the command line."""

import typer

from warpsmith.cli.shared_options import START
from warpsmith.extensions.scaffold.command.init_command import init


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=START)(init)
