"""Tables of fused MoE that SGLang 0.5.23 has for an H100 and not for an H200, tuned by `warpsmith tables`.

    python -m benchmarks.triton.missing_tables --out FOLDER tune --layers NAME... --kernel FILE --known FOLDER
    python -m benchmarks.triton.missing_tables --out FOLDER page --runs FOLDER... --recordings FILE...

`tune` runs the command as a user does, on this machine, with the engine's own kernel and the tables of other
layers as hints. `page` puts its tables beside recordings of `benchmarks.triton.record_moe --share --beside`,
made after it on the same device: a row is right if it is within 2 % of the best that is recorded, by repeated
timings, and never slower than the default by more than that.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.provenance import head, plain_command, record_folder
from benchmarks.triton.moe import Layer
from benchmarks.triton.tables import Recording, read
from benchmarks.trust.record import first_device
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend
from warpsmith.domain.templates.space import Configuration
from warpsmith.extensions.exports.tables.known_tables import table_rows

MISSING = {
    layer.name: layer
    for layer in (
        Layer("lfm2-8b", experts=32, rows=2 * 1792, hidden=2048, top_k=4),
        Layer("lfm2-8b-tp2", experts=32, rows=2 * 896, hidden=2048, top_k=4),
        Layer("lfm2-24b", experts=64, rows=2 * 1536, hidden=2048, top_k=4),
        Layer("nano-tp4", experts=128, rows=2 * 464, hidden=2688, top_k=6),
        Layer("nano-ep8", experts=16, rows=2 * 1856, hidden=2688, top_k=1),
        Layer("super-ep4", experts=128, rows=2 * 2688, hidden=1024, top_k=6),
    )
}
"""Layers by the names of models that have such sizes. What is no part of a table's name, the hidden size and
the experts of a token, is by those models' cards."""
WITHIN = 1.02


def main() -> int:
    """Tune, or write `missing-tables.{json,md}`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=record_folder, required=True)
    kinds = parser.add_subparsers(required=True)
    tune = kinds.add_parser("tune")
    tune.set_defaults(run=_tune)
    tune.add_argument("--layers", choices=MISSING, nargs="+", required=True)
    tune.add_argument("--kernel", type=Path, required=True)
    tune.add_argument("--known", type=Path, required=True)
    written = kinds.add_parser("page")
    written.set_defaults(run=_write)
    written.add_argument("--runs", type=Path, nargs="+", required=True)
    written.add_argument("--recordings", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    return int(asked.run(asked))


def config(layer: Layer) -> dict[str, Any]:
    """The layer's facts, as a model's `config.json` has them."""
    return {
        "model_type": layer.name,
        "num_experts": layer.experts,
        "moe_intermediate_size": layer.rows // 2,
        "hidden_size": layer.hidden,
        "num_experts_per_tok": layer.top_k,
    }


def _tune(asked: argparse.Namespace) -> int:
    files = []
    for name in asked.layers:
        files.append(asked.out / f"{name}.config.json")
        files[-1].write_text(json.dumps(config(MISSING[name])))
    words = ["tables", *files, "--engine", "sglang", "--kernel", asked.kernel, "--known", asked.known]
    run, began = asked.out / "run.json", time.monotonic()
    before = json.loads(run.read_text())["seconds"] if run.exists() else 0.0
    said = "python -m benchmarks.triton.missing_tables " + " ".join(sys.argv[1:])
    made = head(first_device(Backend.CUDA), said) | {"layers": asked.layers}
    with subprocess.Popen(
        [sys.executable, "-m", "warpsmith", *map(str, words), "--tune", str(asked.out / "tables")],
        env=os.environ | {"WARPSMITH_DATA_DIR": str(asked.out / "data")},
    ) as command:
        with suppress(KeyboardInterrupt):  # the command ends itself, and goes on when it is called again
            command.wait()
        code = command.wait()
    made |= {"seconds": round(before + time.monotonic() - began, 1), "exit": code}
    run.write_text(json.dumps(made, indent=1) + "\n")
    return code


def _write(asked: argparse.Namespace) -> int:
    recordings = {found.layer.name: found for found in map(read, asked.recordings)}
    runs = [json.loads((folder / "run.json").read_text()) for folder in asked.runs]
    layers = [
        _layer(MISSING[name], folder, recordings.get(name))
        for folder, run in zip(asked.runs, runs, strict=True)
        for name in run["layers"]
        if _table(MISSING[name], folder)
    ]
    beside = [row["over_best"] for layer in layers for row in layer["rows"] if "over_best" in row]
    record = {
        "commit": commit_name(),
        "command": plain_command("python -m benchmarks.triton.missing_tables " + " ".join(sys.argv[1:])),
        "runs": runs,
        "seconds_of_one_card": round(sum(run["seconds"] for run in runs), 1),
        "recordings": [found.made | {"rows": len(found.times)} for found in recordings.values()],
        "rows_within": round(sum(v <= WITHIN for v in beside) / len(beside), 3) if beside else None,
        "layers": layers,
    }
    (asked.out / "missing-tables.json").write_text(json.dumps(record, indent=1) + "\n")
    (asked.out / "missing-tables.md").write_text(page(record))
    return 0


def _table(layer: Layer, folder: Path) -> Path | None:
    """A layer's table below a folder; None if the run was over before it was written."""
    return next(folder.rglob(f"configs/*/E={layer.experts},N={layer.rows // 2},*.json"), None)


def _layer(layer: Layer, folder: Path, recorded: Recording | None) -> dict[str, Any]:
    """A layer's rows as the command verified them, and beside a recording."""
    file = _table(layer, folder)
    assert file is not None, "asked for before"
    evidence = json.loads((folder / "tables" / file.stem / "evidence.json").read_text())
    parts = [evidence, *evidence.get("more", ())]
    found = {int(c["workload"].partition("=")[2]): c for part in parts for c in part["comparisons"]}
    rows = []
    for row in evidence["table"]["rows"]:
        size, is_tuned = row["key"], row["kind"] == "tuned"
        made: dict[str, Any] = {"M": size, "speedup": row["speedup"] if is_tuned else None}
        if row["verdict"] == "noisy":
            made["withheld"] = row["speedup"]
        if is_tuned:
            made |= {key: found[size][key] for key in ("baseline_us", "best_us", "floor_share")}
        if recorded is not None and size in recorded.tokens:
            made |= _beside(recorded, size, table_rows(file)[size])
        rows.append(made)
    gains = [row["speedup"]["estimate"] if row["speedup"] else 1.0 for row in rows]
    facts = {"name": layer.name, "E": layer.experts, "N": layer.rows // 2, "hidden": layer.hidden}
    facts |= {"top_k": layer.top_k, "file": file.name, "over_default": round(geometric_mean(gains), 3)}
    return facts | {"rows": rows}


def _beside(recorded: Recording, size: int, row: Configuration) -> dict[str, float]:
    """Times of the row and of the default over the best recorded one's."""
    own, best, default = recorded.time(size, row), recorded.best_us(size), recorded.default(size)
    assert own is not None, "rows of the tables are recorded with --beside"
    return {"over_best": round(own[1] / best, 4), "default_over_best": round(default[1] / best, 4)}


def page(record: Mapping[str, Any]) -> str:
    """The record as Markdown."""
    runs = record["runs"]
    lines = [
        "# Missing tables of SGLang, tuned",
        "",
        f"{runs[0]['device']}, driver {runs[0]['driver']}, commit {runs[0]['commit']}; "
        f"{record['seconds_of_one_card'] / 60:.0f} minutes of one card for {len(record['layers'])} layers.",
    ]
    if record["rows_within"] is not None:
        lines += ["", f"Rows within 2 % of the best recorded: {record['rows_within']:.0%}."]
    for layer in record["layers"]:
        lines += ["", f"## E={layer['E']}, N={layer['N']}: {layer['over_default']:.2f}x over the default", ""]
        lines += [f"Hidden size {layer['hidden']}, {layer['top_k']} experts of a token.", ""]
        lines += ["| M | default µs | table µs | speed-up (95 %) | of the floor | over the best recorded |"]
        lines += ["|---|---|---|---|---|---|", *map(_line, layer["rows"])]
    return "\n".join(lines) + "\n"


def _line(row: Mapping[str, Any]) -> str:
    best = f"{row['over_best']:.3f}" if "over_best" in row else ""
    gain = row["speedup"]
    if gain is None:
        withheld = f"; noisy at {row['withheld']['estimate']:.2f}" if "withheld" in row else ""
        return f"| {row['M']} | | | the default stays{withheld} | | {best} |"
    share = f"{row['floor_share']:.2f}" if row["floor_share"] else ""
    interval = f"{gain['estimate']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}]"
    return f"| {row['M']} | {row['baseline_us']:.1f} | {row['best_us']:.1f} | {interval} | {share} | {best} |"


if __name__ == "__main__":
    sys.exit(main())
