"""A fork that finds something out for its process and ends."""

import os
import tempfile
from collections.abc import Callable
from typing import IO, NoReturn

End = Callable[[str, bool], NoReturn]
"""Ends the fork with a text, and says whether it has found what it was to find."""


def begin(work: Callable[[End], object]) -> Callable[[], tuple[bool, str]]:
    """Begin `work` in a fork, which takes what ends it.

    Returns:
        Waits for the fork, and returns what it ended with; (False, "") if it ended in another way.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115  whoever waits closes it
    pid = os.fork()
    if pid == 0:
        try:
            # What a compiler prints of this is nobody's.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            work(lambda text, found: _end(file, text, found))
        finally:
            os._exit(1)

    def wait() -> tuple[bool, str]:
        failed = os.waitpid(pid, 0)[1]
        with file:
            file.seek(0)
            text = file.read().decode(errors="replace")
        return not failed, text

    return wait


def _end(file: IO[bytes], text: str, found: bool) -> NoReturn:
    file.write(text.encode(errors="replace"))
    file.flush()
    os._exit(0 if found else 1)
