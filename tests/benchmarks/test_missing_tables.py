"""The page of tuned tables: what was verified, and beside a recording."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.triton import missing_tables
from benchmarks.triton.missing_tables import MISSING, config
from benchmarks.triton.moe import NUMBERS, Layer, default_configuration
from warpsmith.extensions.exports.tables.model_config import moe_layer

LAYER = MISSING["nano-ep8"]
BEST = (16, 64, 128, 1, 4, 3)


def row(values: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(NUMBERS, values, strict=True))


def test_a_row_is_shown_beside_the_best_that_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default, other = default_configuration(LAYER, 8), row((16, 128, 64, 1, 4, 4))
    times = [(row(BEST), 10.0), (other, 10.1), (default, 15.0)]
    rows = [{"M": m, **r, "us": [us]} for m in (8, 16) for r, us in times]
    with gzip.open(tmp_path / "moe.json.gz", "wt") as stream:
        json.dump({"made": {"device": "D"}, "layer": vars(LAYER), "rows": rows}, stream)
    gain = {"estimate": 1.4, "low": 1.3, "high": 1.5}
    compared = {"workload": "M=8", "baseline_us": 15.2, "best_us": 10.8, "floor_share": None}
    shown = [{"key": 8, "kind": "tuned", "speedup": gain, "verdict": "faster"}]
    shown += [{"key": 16, "kind": "pinned", "speedup": gain, "verdict": "noisy"}]
    name = "E=16,N=1856,device_name=D"
    folder = tmp_path / "tables" / name
    folder.mkdir(parents=True)
    evidence: dict[str, Any] = {"comparisons": [compared], "table": {"rows": shown}}
    (folder / "evidence.json").write_text(json.dumps(evidence))
    place = tmp_path / "tables" / "configs" / "triton_3_6_0" / f"{name}.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"8": other, "16": default}))
    made = {
        "device": "D",
        "driver": "1",
        "commit": "c",
        "layers": ["nano-ep8", "super-ep4"],
        "seconds": 120.0,
    }
    (tmp_path / "run.json").write_text(json.dumps(made))
    words = ("--out", tmp_path / "out", "page", "--runs", tmp_path, "--recordings", tmp_path / "moe.json.gz")
    monkeypatch.setattr(sys, "argv", ["missing_tables", *map(str, words)])
    assert missing_tables.main() == 0
    record = json.loads((tmp_path / "out" / "missing-tables.json").read_text())
    (layer,) = record["layers"]
    assert record["rows_within"] == 0.5 and record["seconds_of_one_card"] == 120.0
    assert [r["over_best"] for r in layer["rows"]] == [1.01, 1.5] and layer["over_default"] == 1.183
    text = (tmp_path / "out" / "missing-tables.md").read_text()
    assert "| 8 | 15.2 | 10.8 | 1.40 [1.30, 1.50] |  | 1.010 |" in text
    assert "| 16 | | | the default stays; noisy at 1.40 | | 1.500 |" in text


@pytest.mark.parametrize("layer", MISSING.values(), ids=lambda layer: layer.name)
def test_the_command_reads_the_layers(layer: Layer) -> None:
    found = moe_layer(config(layer), 1, 1, "config.json")
    assert (found.shape.experts, 2 * found.shape.size) == (layer.experts, layer.rows)
    assert (found.hidden, found.chosen) == (layer.hidden, layer.top_k)
