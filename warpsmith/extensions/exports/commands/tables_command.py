"""`tables`: tables that an engine did not find, by its log, or looks for, by a model's configuration."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput, WarpsmithError
from warpsmith.extensions.exports.tables.engine_log import EngineLog, MissingTable, read_log
from warpsmith.extensions.exports.tables.model_config import SIZES, model_config, model_tables, moe_layer
from warpsmith.report.safe_console import SafeConsole

HEADS = ("engine", "kernel", "layer", "device", "triton", "lines", "runs now")


@dataclass(frozen=True)
class Asked:
    """How a model is spread over devices."""

    tp: int = 1
    ep: int = 1
    device: str = ""
    """Name of the device; empty: the first CUDA device of this machine, or left open."""


def tables(inputs: Sequence[Path], asked: Asked, as_json: bool) -> int:
    """Print the tables that logs name as missing, and those for which a model's configuration asks.

    Returns:
        1 if there is none, else 0.

    Raises:
        InvalidInput: an input cannot be read, or a model has no layer with such a table.
    """
    found = _read(inputs, asked)
    if as_json:
        echo(json.dumps(_plain(found), indent=1))
    elif not found.missing:
        echo("no line names a missing table; engines write `Config file not found at ...json`", err=True)
    else:
        _show(found)
    return int(not found.missing)


def _read(inputs: Sequence[Path], asked: Asked) -> EngineLog:
    """All inputs as one log; a model's tables have no lines."""
    texts = [(str(path), _text(path)) for path in inputs]
    configs = {name: found for name, text in texts if (found := model_config(text)) is not None}
    log = read_log("\n".join(text for name, text in texts if name not in configs))
    if not configs:
        return log
    device, triton = asked.device or _first_device(), _triton_version()
    missing = list(log.missing)
    for name, config in configs.items():
        missing += model_tables(moe_layer(config, asked.tp, asked.ep, name), device, triton)
    return EngineLog(tuple(missing), log.sizes or SIZES)


def _first_device() -> str:
    """Name of this machine's first CUDA device; empty without one."""
    from warpsmith.domain.device import Backend
    from warpsmith.sandbox.hosts.device_host import probe_devices

    try:
        devices = probe_devices([Backend.CUDA]).devices
    except WarpsmithError:  # a driver that hangs: the name is left open
        return ""
    return devices[0].name if devices else ""


def _triton_version() -> str:
    try:
        return version("triton").partition("+")[0]
    except PackageNotFoundError:
        return ""


def _text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as exc:
        raise InvalidInput("inputs", f"{path}: {exc.strerror}") from exc


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
            str(table.lines or ""),
        )
        shown.add_row(*map(Text, (*cells, table.runs)))
    SafeConsole().print(shown)
    count = len(found.missing)
    said = "missing" if all(t.lines for t in found.missing) else "asked for"
    many = f"1 table is {said}" if count == 1 else f"{count} tables are {said}"
    asked = f"; the engine asks for sizes {', '.join(map(str, found.sizes))}" if found.sizes else ""
    echo(f"\n{many}{asked}")
