"""`tables --tune` and `--check`: the whole command, with a service of its own, on a recorded H100.

The recording is of Mixtral's layer in two slices, all configurations of a sweep at six batch sizes.
"""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from tests.extensions.exports.test_engine_table import tuned
from tests.extensions.exports.test_moe_job import FILE
from warpsmith.cli.app import app
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.space import SHAPE_PREFIX
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.exports.commands import table_runs
from warpsmith.extensions.exports.tables import known_tables, moe_job
from warpsmith.extensions.exports.tables.engine_defaults import vllm_default
from warpsmith.extensions.exports.tables.engines import NEEDED
from warpsmith.job_files.jobfile import parse_job

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "triton" / "moe-mixtral.json.gz"
CONFIG = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
}
NAME = "E=8,N=1792,device_name=NVIDIA_H100"


def recorded_times() -> dict[int, dict[tuple[int, ...], float]]:
    """µs by batch size and configuration."""
    with gzip.open(RECORDED, "rt") as stream:
        rows = json.load(stream)["rows"]
    found: dict[int, dict[tuple[int, ...], float]] = {}
    for row in rows:
        if "us" in row:
            found.setdefault(row["M"], {})[tuple(row[n] for n in NEEDED)] = sorted(row["us"])[4]
    return found


TIMES = recorded_times()
DEFAULT = vllm_default(8, "", None)


def default_of(size: int) -> tuple[int, ...]:
    assert DEFAULT is not None
    return tuple(int(DEFAULT.configuration(size)[n]) for n in NEEDED)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the command, on a machine whose device is the recording."""
    names = (*NEEDED, f"{SHAPE_PREFIX}M")
    rows = [(*row, size) for size, times in TIMES.items() for row in times]
    cache = {
        str(i): dict(zip(names, row, strict=True)) | {"time": TIMES[row[-1]][row[:-1]] / 1000}
        for i, row in enumerate(rows)
    }
    values = {n: sorted({row[i] for row in rows}) for i, n in enumerate(names)}
    (tmp_path / "recorded").mkdir()
    text = json.dumps({"tune_params": values, "cache": cache})
    (tmp_path / "recorded" / "fused_moe_table-NVIDIA H100.json").write_text(text)
    monkeypatch.setenv("WARPSMITH_REPLAY_DIR", str(tmp_path / "recorded"))
    monkeypatch.setenv("WARPSMITH_DATA_DIR", str(tmp_path / "data"))
    for module in (moe_job, known_tables):
        monkeypatch.setattr(module, "SIZES", tuple(TIMES))

    def on_it(job: Mapping[str, Any]) -> Job:
        launch = job["kernel"]["launch"] | {"block": ["1"]}
        output = {"name": "y", "dtype": "float32", "role": "output", "shape": ["M"]}
        own = {"backend": "replay", "source": "// recorded", "launch": launch, "arguments": [output]}
        kernel = job["kernel"] | own
        return parse_job(dict(job) | {"kernel": kernel})

    monkeypatch.setattr(table_runs, "parse_job", on_it)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def ran(folder: Path, *words: object) -> tuple[int, str]:
    own = ("--kernel", FILE, "--engine", "vllm", "--tp", 8)
    said = ["tables", *map(str, (folder / "config.json", *words, *own, "--device", "NVIDIA H100"))]
    done = CliRunner().invoke(app, said, env={"COLUMNS": "160"})
    return done.exit_code, done.output + str(done.exception or "")


def others_table(folder: Path) -> Path:
    """The folder with the best rows, as if they had won for another layer."""
    folder.mkdir()
    best = {size: min(times, key=lambda row: times[row]) for size, times in TIMES.items()}
    text = json.dumps({str(size): dict(zip(NEEDED, row, strict=True)) for size, row in best.items()})
    (folder / "E=8,N=3584,device_name=NVIDIA_H100.json").write_text(text)
    return folder


def us_of(size: int, row: Mapping[str, int]) -> float:
    return TIMES[size][tuple(row[n] for n in NEEDED)]


def test_a_missing_table_is_tuned_once(machine: Path) -> None:
    wanted = ("--tune", machine / "tables", "--known", others_table(machine / "known"))
    code, shown = ran(machine, *wanted)
    assert code == 0, shown
    assert re.search(r"job 5 of 5, (?s:.)*x over the default; \d+ µs less in 32 layers at 1 tokens", shown)
    table = json.loads((machine / "tables" / f"{NAME}.json").read_text())
    assert set(table) == {*map(str, TIMES)}
    for size, times in TIMES.items():
        found = us_of(size, table[str(size)])
        assert found < times[default_of(size)] and found < 1.02 * min(times.values()), size
    asked = (machine / "tables" / NAME / "pull-request.md").read_text()
    assert f"# Add the fused MoE table {NAME}.json" in asked and "NVIDIA H100, driver recorded" in asked
    for size in TIMES:
        assert re.search(rf"\| {size} \| [\d.]+ \| [\d.]+ \| 1\.\d\d \[1", asked), asked
    (machine / "tables" / f"{NAME}.json").unlink()
    code, again = ran(machine, *wanted)
    assert code == 0 and re.findall(r"job \d of 5, (\w+)", again) == re.findall(r"job \d of 5, (\w+)", shown)
    assert json.loads((machine / "tables" / f"{NAME}.json").read_text()) == table


def test_rows_of_tables_are_checked(machine: Path) -> None:
    """Of the layer's own table: the best row, a slow one, the default, and one that does not run."""
    best, worst = (pick(TIMES[size], key=TIMES[size].__getitem__) for pick, size in ((min, 1), (max, 16)))
    own = {1: best, 16: worst, 64: default_of(64), 256: (128, 256, 256, 1, 4, 5)}
    folder = others_table(machine / "configs")
    text = json.dumps({str(size): dict(zip(NEEDED, row, strict=True)) for size, row in own.items()})
    (folder / f"{NAME}.json").write_text(text)
    code, shown = ran(machine, "--check", folder)
    lines = dict(re.findall(r"^ *(\d+)  +[\d.]+  +(.*?) *$", shown, re.MULTILINE))
    gain = TIMES[1][default_of(1)] / TIMES[1][best]
    assert code == 0 and lines["1"].split() == [f"{gain:.2f}x", "as", "good", "as", "any", "tried"], shown
    assert lines["16"].endswith("slower than the default: take it out")
    assert lines["64"].startswith("1.00x") and "behind another row" in lines["64"]
    assert lines["256"] == "refused here: take it out"
    (folder / f"{NAME}.json").unlink()
    code, shown = ran(machine, "--check", folder)
    lines = dict(re.findall(r"^ *(\d+)  +[\d.]+  +(.*?) *$", shown, re.MULTILINE))
    assert code == 0 and len(lines) == len(TIMES), shown
    assert lines["4096"].endswith("worth a table"), shown


def test_a_table_without_the_rows_of_a_job_that_failed_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"a": JobState.DONE, "b": JobState.FAILED}
    found = tuned({1: dict(zip(NEEDED, default_of(64), strict=True))}, dimensions=[{"M": 1, "K": 1}])
    client = SimpleNamespace(result=lambda job: found, trials=lambda job: [])
    monkeypatch.setattr(
        table_runs, "follow", lambda client, job: SimpleNamespace(state=ends[job], detail="no device")
    )
    table = table_runs.TableJobs("vllm-config", f"{NAME}.json", ())
    assert not table_runs.TableRun(out=tmp_path)._shown(cast(Client, client), table, ["a", "b"])
    assert list(tmp_path.iterdir()) == []
