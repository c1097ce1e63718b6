"""All output of the commands: text of a service or a job file cannot steer the terminal."""

import typer

from warpsmith.printable import printable


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line, with control characters escaped.

    Args:
        err: to standard error.
    """
    typer.echo(printable(str(text)), err=err)
