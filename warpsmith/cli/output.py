"""All output of the commands: text of a service or a job file cannot steer the terminal."""

import typer

from warpsmith.system.printable import printable


def echo(text: object = "", *, err: bool = False, ends_line: bool = True) -> None:
    """Print a line, with control characters escaped.

    Args:
        err: to standard error.
        ends_line: False for a question, whose answer goes on in its line.
    """
    typer.echo(printable(str(text)), err=err, nl=ends_line)
