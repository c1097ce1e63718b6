"""`tables`: what an engine's log says of tuning tables that it did not find."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_log import EngineLog, MissingTable, read_log
from warpsmith.report.safe_console import SafeConsole

HEADS = ("engine", "kernel", "layer", "device", "triton", "lines", "runs now")


def tables(logs: Sequence[Path], as_json: bool) -> int:
    """Print the missing tables of logs; `-` is standard input.

    Returns:
        1 if there is none, else 0.

    Raises:
        InvalidInput: a log cannot be read.
    """
    found = read_log("\n".join(_text(path) for path in logs))
    if as_json:
        echo(json.dumps(_plain(found), indent=1))
    elif not found.missing:
        echo("no line names a missing table; engines write `Config file not found at ...json`", err=True)
    else:
        _show(found)
    return int(not found.missing)


def _text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as exc:
        raise InvalidInput("logs", f"{path}: {exc.strerror}") from exc


def _plain(found: EngineLog) -> dict[str, Any]:
    def row(table: MissingTable) -> dict[str, Any]:
        place = asdict(table.place) | {"facts": dict(table.place.facts)}
        return place | {
            "file": table.file,
            "lines": table.lines,
            "runs": table.runs,
            "sizes": sorted(table.sizes),
        }

    return {"missing": [row(table) for table in found.missing], "sizes": list(found.sizes)}


def _show(found: EngineLog) -> None:
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for head in HEADS:
        shown.add_column(head, overflow="fold")
    for table in found.missing:
        place = table.place
        sizes = f" (M={','.join(map(str, sorted(table.sizes)))})" if table.sizes else ""
        cells = (
            place.engine,
            place.kernel,
            f"{place.layer}{sizes}",
            place.device,
            place.triton,
            str(table.lines),
        )
        shown.add_row(*map(Text, (*cells, table.runs)))
    SafeConsole().print(shown)
    many = "1 table is" if len(found.missing) == 1 else f"{len(found.missing)} tables are"
    asked = f"; the engine asks for sizes {', '.join(map(str, found.sizes))}" if found.sizes else ""
    echo(f"\n{many} missing{asked}")
