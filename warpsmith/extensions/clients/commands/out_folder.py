"""The folder that `--out` names, and a result that outlives a failure to write it there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput, Unavailable


def require_folder(out: Path) -> None:
    """Look, without making anything, whether files can be written to a folder that may not exist yet.

    Raises:
        InvalidInput: something on its path is no folder, or this user may not write there.
    """
    place = next(p for p in (out.absolute(), *out.absolute().parents) if os.path.lexists(p))
    if not place.is_dir():
        raise InvalidInput("--out", f"{place} exists and is no folder; name a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InvalidInput("--out", f"files cannot be written to {place}; name another folder")


@contextmanager
def result_kept(job_id: str) -> Iterator[None]:
    """Context that reads and writes a result; whatever ends it early says how to fetch the result.

    Raises:
        Unavailable: a file cannot be written.
    """
    words = f"the result is kept: run `warpsmith serve`, then `warpsmith result {job_id} --out FOLDER`"
    try:
        yield
    except OSError as exc:
        raise Unavailable(f"the result of job {job_id} is not written: {exc}; {words}") from exc
    except BaseException:
        echo(f"job {job_id} has ended, and {words}", err=True)
        raise
