"""Exports of a result: what another program builds in, and the evidence beside it."""

import json
from pathlib import Path

from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult
from warpsmith.report.c_header import c_header
from warpsmith.report.shape_lookup import Lookup

FORMATS = {"c": ("dispatch.h", c_header)}
"""By name: file and what writes it."""
EVIDENCE = {"id", "device", "driver", "device_class", "reason", "speedup", "comparisons", "no_gain"}


def write_export(result: JobResult, form: str, folder: Path) -> list[Path]:
    """Write an export and `evidence.json`; returns the paths written.

    Raises:
        InvalidInput: there is no such format, or it cannot hold the job.
    """
    if form not in FORMATS:
        raise InvalidInput("--as", f"there is no format {form!r}; there are: {', '.join(FORMATS)}")
    name, made = FORMATS[form]
    try:
        lookup = Lookup(result)
    except ValueError as exc:
        raise InvalidInput("", str(exc)) from exc
    text = made(lookup)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name, folder / "evidence.json"]
    paths[0].write_text(text, encoding="utf-8")
    shown = result.model_dump(
        mode="json", include=EVIDENCE | {"warpsmith_version", "warpsmith_commit", "limits"}
    )
    shown["options"] = list(result.job.kernel.options)
    paths[1].write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
    return paths
