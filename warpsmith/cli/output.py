"""All output of the commands: text of a service or a job file cannot steer the terminal."""

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console
from rich.segment import Segment

from warpsmith.printable import printable


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line, with control characters escaped.

    Args:
        err: to standard error.
    """
    typer.echo(printable(str(text)), err=err)


class SafeConsole(Console):
    """A console whose own control codes are the only ones."""

    def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
        """The segments of what is shown, with control characters escaped."""
        for segment in super().render(*args, **kwargs):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
