"""`tables`: tables that an engine did not find, by its log, or looks for, by a model's configuration."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput, WarpsmithError
from warpsmith.extensions.exports.commands.table_runs import TableJobs, TableRun
from warpsmith.extensions.exports.tables.engine_log import EngineLog, MissingTable, read_log
from warpsmith.extensions.exports.tables.known_tables import known_winners, table_rows, tried_rows
from warpsmith.extensions.exports.tables.model_config import (
    SIZES,
    MoeLayer,
    logged_layer,
    model_config,
    model_tables,
    moe_layer,
)
from warpsmith.extensions.exports.tables.moe_job import MoeWork, moe_jobs
from warpsmith.report.safe_console import SafeConsole

HEADS = ("engine", "kernel", "layer", "device", "triton", "lines", "runs now")
KERNELS = {
    "vllm": ("model_executor/layers/fused_moe/fused_moe.py",),
    "sglang": (
        "kernels/ops/moe/fused_moe_triton_kernels.py",
        "srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_kernels.py",
        "srt/layers/moe/fused_moe_triton/fused_moe_triton_kernels.py",
    ),
}
"""Places of the kernel in the package of an engine, of later versions first."""


@dataclass(frozen=True)
class Asked:
    """Options of the command: facts that the inputs lack, and the folder for jobs."""

    tp: int = 1
    ep: int = 1
    device: str = ""
    """Name of the device; empty: that of the log, or the first CUDA device of this machine."""
    write: Path | None = None
    """Folder of jobs; None: none are written."""
    kernel: Path | None = None
    """File with the engine's kernel; None: that of an engine that is installed here."""
    engine: str = "any"
    """The only engine that is asked for, as `vllm`; `any`: all."""
    hidden: int = 0
    top_k: int = 0
    skew: float = 0.0
    known: Path | None = None
    """Folder with an engine's tables; None: that of an engine that is installed here."""
    check: Path | None = None
    """Folder with the tables to check; None: none are."""
    run: TableRun | None = None
    """The run of the jobs; None: none run."""


def tables(inputs: Sequence[Path], asked: Asked, as_json: bool) -> int:
    """Print the tables that logs name as missing, and those for which a model's configuration asks.

    Returns:
        1 if there is none, else 0.

    Raises:
        InvalidInput: an input cannot be read, a model has no layer with such a table, or no job can be made.
    """
    if asked.check and asked.run and asked.run.out:
        raise InvalidInput("--check", "measures tables as they are; give it without --tune")
    found, asked = _read(inputs, asked)
    if as_json:
        echo(json.dumps(_plain(found), indent=1))
    elif not found.missing:
        echo("no line names a missing table; engines write `Config file not found at ...json`", err=True)
    elif asked.check is None:
        _show(found)
    if not found.missing:
        return 1
    made = _made(found, asked) if asked.write or asked.run else []
    if asked.write is not None:
        _write([job for table in made for job in table.jobs], asked.write)
    return asked.run.of(made) if asked.run is not None else 0


def _made(found: EngineLog, asked: Asked) -> list[TableJobs]:
    made = [made for row in found.missing if (made := _jobs(row, asked)) is not None]
    if not made:
        words = "no engine with these tables is installed here; give the file of its kernel, and --engine"
        raise InvalidInput("--kernel", words)
    return made


def _write(jobs: Sequence[Mapping[str, Any]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        (folder / f"{job['name']}.json").write_text(json.dumps(job, indent=1) + "\n")
    echo(f"{len(jobs)} job{'s' * (len(jobs) > 1)} in {folder}", err=True)


def _read(inputs: Sequence[Path], asked: Asked) -> tuple[EngineLog, Asked]:
    """All inputs as one log, and what a model's configuration says besides."""
    texts = [(str(path), _text(path, "inputs")) for path in inputs]
    configs = {name: config for name, text in texts if (config := model_config(text)) is not None}
    logs = [text for name, text in texts if name not in configs]
    log = read_log("\n".join(logs if texts else _checked_lines(asked)))
    missing = list(log.missing)
    for name, config in configs.items():
        layer = moe_layer(config, asked.tp, asked.ep, name)
        missing += model_tables(layer, asked.device or _first_device())
        told = asked.hidden or layer.hidden, asked.top_k or layer.chosen
        asked = replace(asked, hidden=told[0], top_k=told[1])
    wanted = tuple(row for row in missing if asked.engine in ("any", row.place.engine.lower()))
    return EngineLog(wanted, log.sizes or SIZES * bool(configs)), asked


def _checked_lines(asked: Asked) -> list[str]:
    """The lines of an engine that misses the tables that are checked."""
    files = asked.check.rglob("E=*.json") if asked.check else ()
    return [f"Config file not found at {asked.engine}/{file}" for file in sorted(files)]


def _jobs(row: MissingTable, asked: Asked) -> TableJobs | None:
    """Jobs of a table; None if no kernel of the engine is at hand, or no job is made for it."""
    place = row.place
    engine = place.engine.lower()
    if asked.kernel and asked.engine == "any":
        raise InvalidInput("--engine", "give the engine whose kernel the file has, vllm or sglang")
    path = asked.kernel or _installed(engine)
    if path is None or place.kernel != "fused MoE":
        return None
    layer = _layer(row, asked)
    work = MoeWork(f"{engine}-config", layer, asked.device or place.device, asked.skew, _known(engine, asked))
    rows = None
    if asked.check is not None:
        file = next((f for f in sorted(asked.check.rglob("E=*.json")) if f.name == row.file), None)
        rows = table_rows(file) if file else None
        likely = known_winners(work.known or asked.check, layer.shape, work.device)
        work = replace(work, tried=tried_rows(rows, likely))
    jobs = tuple(moe_jobs(work, _text(path, "--kernel"), str(path)))
    return TableJobs(work.form, row.file, jobs, row.layers, rows)


def _layer(row: MissingTable, asked: Asked) -> MoeLayer:
    hidden, chosen = row.hidden or asked.hidden, row.chosen or asked.top_k
    if not (hidden and chosen):
        raise InvalidInput(
            "--hidden", "no log says it; give --hidden and --top-k, or the model's config.json"
        )
    return logged_layer(row.place, hidden, chosen)


def _known(engine: str, asked: Asked) -> Path | None:
    """Folder of the engine's tables."""
    own = _installed(engine)
    return asked.known or (next((f for f in own.parents if f.name == engine), None) if own else None)


def _installed(engine: str) -> Path | None:
    """The file of an installed engine's kernel; the engine is not imported."""
    package = find_spec(engine) if engine in KERNELS else None
    folders = package.submodule_search_locations if package else None
    files = (Path(folder) / file for folder in folders or () for file in KERNELS[engine])
    return next((file for file in files if file.is_file()), None)


def _first_device() -> str:
    """Name of this machine's first CUDA device; empty without one."""
    from warpsmith.domain.device import Backend
    from warpsmith.sandbox.hosts.device_host import probe_devices

    try:
        devices = probe_devices([Backend.CUDA]).devices
    except WarpsmithError:  # a driver that hangs: the name is left open
        return ""
    return devices[0].name if devices else ""


def _text(path: Path, field: str) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as exc:
        raise InvalidInput(field, f"{path}: {exc.strerror}") from exc


def _plain(found: EngineLog) -> dict[str, Any]:
    def row(table: MissingTable) -> dict[str, Any]:
        place = asdict(table.place) | {"facts": dict(table.place.facts)}
        own = {"file": table.file, "lines": table.lines, "runs": table.runs}
        return place | own | {"sizes": sorted(table.sizes)}

    return {"missing": [row(table) for table in found.missing], "sizes": list(found.sizes)}


def _show(found: EngineLog) -> None:
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for head in HEADS:
        shown.add_column(head, overflow="fold")
    for table in found.missing:
        place = table.place
        sizes = f" (M={','.join(map(str, sorted(table.sizes)))})" if table.sizes else ""
        cells = (place.engine, place.kernel, f"{place.layer}{sizes}", place.device, place.triton)
        shown.add_row(*map(Text, (*cells, str(table.lines or ""), table.runs)))
    SafeConsole().print(shown)
    count = len(found.missing)
    said = "missing" if all(t.lines for t in found.missing) else "asked for"
    many = f"1 table is {said}" if count == 1 else f"{count} tables are {said}"
    asked = f"; the engine asks for sizes {', '.join(map(str, found.sizes))}" if found.sizes else ""
    echo(f"\n{many}{asked}")
