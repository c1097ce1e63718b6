"""Progress of a job that a program waits for: in a terminal, in a notebook, or told to a function."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.commands.status_views import ProgressLines, live_panel, status_lines
from warpsmith.http_models import JobStatus
from warpsmith.report.safe_console import SafeConsole
from warpsmith.system.printable import printable

Show = Callable[[JobStatus], None]
Progress = Literal["auto", False] | Show | None


@contextmanager
def shown(progress: Progress) -> Iterator[Show]:
    """Context with the function that is told every status.

    Args:
        progress: `auto` or None: a display on standard error if it is a terminal, lines that are replaced in
            a notebook, a line every 10 s on standard error elsewhere. False: nothing. Or a function.

    Raises:
        InvalidInput: it is none of these.
    """
    if callable(progress):
        yield progress
    elif progress is False:
        yield _nothing
    elif progress not in (None, "auto"):
        raise InvalidInput("progress", f"{progress!r} is none; give 'auto', False, or a function of a status")
    elif (notebook := _notebook()) is not None:
        yield _InNotebook(notebook)
    elif (console := SafeConsole(stderr=True)).is_terminal:
        with live_panel(console) as show:
            yield show
    else:
        yield ProgressLines(partial(echo, err=True))


def _nothing(_status: JobStatus) -> None:
    """A status that nobody sees."""


def _notebook() -> Any:
    """The module with the display of a notebook; None elsewhere. Nothing is imported for it."""
    return sys.modules.get("IPython.display") if "ipykernel" in sys.modules else None


class _InNotebook:
    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None
        self._text = ""

    def __call__(self, status: JobStatus) -> None:
        text = "\n".join(map(printable, status_lines(status)))
        if text == self._text:
            return
        self._text = text
        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display.display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
