"""Logs of engines: every spelling of a missing table that public threads show, with names replaced."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warpsmith.cli.app import app
from warpsmith.extensions.exports.tables.engine_log import read_log

LOGS = json.loads((Path(__file__).parents[2] / "data" / "engine_logs.json").read_text())
BREAKS = (61, 80, 100)
"""Columns of terminals."""


@pytest.mark.parametrize("name", LOGS)
def test_a_spelling_is_read(name: str) -> None:
    expected = dict(LOGS[name])
    noise = "INFO 05-03 17:42:20 [backends.py:643] Using cache directory: /opt/cache/E=1,N=2.json\n"
    (table,) = read_log(noise + expected.pop("log") + noise).missing
    place = table.place
    found = {"engine": place.engine, "kernel": place.kernel, "layer": place.layer, "device": place.device}
    assert found | {"triton": place.triton, "lines": table.lines, "runs": table.runs} == expected


@pytest.mark.parametrize("width", BREAKS)
@pytest.mark.parametrize("name", [n for n, held in LOGS.items() if "<font" not in held["log"]])
def test_a_terminal_that_breaks_lines_changes_nothing(name: str, width: int) -> None:
    text = LOGS[name]["log"]
    broken = "\n".join(text[n : n + width] for n in range(0, len(text), width))
    assert read_log(broken) == read_log(text)


def test_shapes_of_aiter_are_sizes_of_one_table() -> None:
    line = "(Worker_TP{0} pid=1184{0}) [aiter] shape is M:{1}, N:{2}, K:7168, not found tuned config in /tmp/"
    line += "aiter_configs/a8w8_blockscale_tuned_gemm.csv, will use default config!\n"
    asked = [(0, 72, 512), (1, 72, 512), (0, 8, 512), (1, 72, 2112)]
    first, second = read_log("".join(line.format(*three) for three in asked)).missing
    assert (first.place.layer, first.lines, first.sizes) == ("N=512,K=7168", 3, {8, 72})
    assert (second.place.layer, second.lines, second.sizes) == ("N=2112,K=7168", 1, {72})
    assert first.place.kernel == "a8w8_blockscale GEMM"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("[2026-05-07 13:39:13 TP0] Capture cuda graph bs [1, 2, 4, 8, 12]\n", (1, 2, 4, 8, 12)),
        ("'cudagraph_capture_sizes': [512, 8, 1], 'max_num_batched_tokens': 8192}", (1, 8, 512, 8192)),
        ("ServerArgs(chunked_prefill_size=16384, cuda_graph_bs=[1, 2])", (1, 2, 16384)),
        ("nothing of it", ()),
    ],
)
def test_sizes_are_those_of_the_engine(text: str, sizes: tuple[int, ...]) -> None:
    assert read_log(text).sizes == sizes


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "Config file not found at " * 20_000,
        "Config file not found at ['" + "a" * 500_000,
        "shape is M:1, N:1, K:1" * 9999,
    ],
)
def test_a_log_of_any_form_is_read_in_time(text: str) -> None:
    assert read_log(text).missing == ()


def test_the_command_names_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    one.write_text(LOGS["sglang 0.5, a table of an older triton"]["log"])
    other.write_text("[TP0] Capture cuda graph bs [1, 2]\n")
    ran = CliRunner().invoke(app, ["tables", str(one), str(other)])
    assert ran.exit_code == 0, ran.output
    for words in ("SGLang", "NVIDIA_H200", "3.5.1", "1 table is missing; the engine asks for sizes 1, 2"):
        assert words in ran.output
    told = CliRunner().invoke(app, ["tables", "-", "--json"], input=one.read_text())
    (row,) = json.loads(told.output)["missing"]
    assert (row["file"], row["facts"]["E"]) == ("E=128,N=192,device_name=NVIDIA_H200.json", "128")
    none = CliRunner().invoke(app, ["tables", str(other)])
    assert none.exit_code == 1 and "no line names a missing table" in none.output
