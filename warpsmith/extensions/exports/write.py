"""Exports of a result: what another program builds in, and the evidence beside it."""

from pathlib import Path

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_options import OPTION
from warpsmith.extensions.exports.tables.engines import ENGINES
from warpsmith.extensions.exports.wanted import ExportRequest, Files, evidence
from warpsmith.registry import Kind, load, named


def write_export(wanted: ExportRequest, form: str, folder: Path) -> list[Path]:
    """Write an export and `evidence.json`; returns the paths written.

    Raises:
        InvalidInput: there is no such format, or it cannot hold the job.
    """
    formats = named(Kind.EXPORT)
    if form not in formats:
        raise InvalidInput("--as", f"there is no format {form!r}; there are: {', '.join(formats)}")
    if (wanted.table or wanted.more) and form not in ENGINES:
        field = OPTION if wanted.table else "JOB"
        words = "take it" if wanted.table else "are made of several jobs"
        raise InvalidInput(field, f"{form} is no table; only {', '.join(ENGINES)} {words}")
    made: Files = dict(load(Kind.EXPORT, form)(wanted))
    made.setdefault("evidence.json", evidence(wanted.result))
    paths = []
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
