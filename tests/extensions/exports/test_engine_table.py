"""Tables for engines: the row that an engine finds for every batch size, and what no table may hold."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.exports.results import job, result
from warpsmith.cli.app import app
from warpsmith.domain.templates.outcome import Comparison, Interval, Verdict
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.result import Result
from warpsmith.extensions.exports.commands.command import export
from warpsmith.extensions.exports.tables.engine_defaults import sglang_default, vllm_default
from warpsmith.extensions.exports.tables.engine_table import engine_table
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.exports.write import write_export
from warpsmith.http_models import CandidateView, JobResult

SIZES = range(1, 4097)
FIELDS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")


def row(m: int = 16, n: int = 64, k: int = 64, warps: int = 4) -> Configuration:
    return dict(zip(FIELDS, (m, n, k, 1, warps, 3), strict=True))


DEFAULT = row(16, 32, 32)
FAST = {16: row(16, 64, 128), 64: row(64, 128, 64, 8), 1024: row(128, 256, 64, 8)}
"""Verified winners by batch size; 256 has none."""
TUNED = [16, 64, 256, 1024]
MOE = {"E": "8", "N": "14336", "triton": "3.6.0"}
PARAMETERS: list[dict[str, Any]] = [
    {"name": "BLOCK_SIZE_M", "values": [16, 64, 128]},
    {"name": "BLOCK_SIZE_N", "values": [32, 64, 128, 256]},
    {"name": "BLOCK_SIZE_K", "values": [32, 64, 128]},
    {"name": "GROUP_SIZE_M", "values": [1, 8]},
    {"name": "num_warps", "values": [4, 8]},
    {"name": "num_stages", "values": [3, 4]},
]


def comparison(workload: str, configuration: Configuration, low: float, verdict: Verdict) -> Comparison:
    return Comparison(
        workload=workload,
        configuration_key=configuration_key(configuration),
        baseline_us=6.0,
        best_us=4.0,
        speedup=Interval(estimate=low + 0.1, low=low, high=low + 0.2),
        verdict=verdict,
        cache="cold",
        pairs=12,
    )


def tuned(
    winners: Mapping[int, Configuration] = FAST,
    parameters: Sequence[dict[str, Any]] = PARAMETERS,
    dimensions: Sequence[Mapping[str, int]] | None = None,
    labels: Mapping[str, str] | None = None,
    **changes: Any,
) -> JobResult:
    """A job over batch sizes M, of which `winners` has those that were verified as faster."""
    shapes = dimensions or [{"M": m, "N": 4096, "K": 1024} for m in TUNED]
    kernel = job().kernel.model_dump(mode="json")
    text = json.dumps(kernel).replace("rows * columns", "M * K").replace('"rows", "columns"', '"M", "K"')
    made = job(
        kernel=json.loads(text),
        workloads=[{"dimensions": d} for d in shapes],
        parameters=list(parameters),
        labels=dict(labels or {}),
    )
    base = result()
    entries, comparisons = [], []
    for workload in made.workloads:
        won = winners.get(workload.dimensions["M"])
        kept = {"configuration": None, "candidate": None, "source": None}
        won_fields = {"configuration": won, "candidate": "c1"} if won else kept
        entries.append(base.dispatch[0].model_copy(update={"workload": workload.key, **won_fields}))
        verdict = Verdict.FASTER if won else Verdict.EQUAL
        comparisons.append(comparison(workload.key, won or FAST[64], 1.2 if won else 0.98, verdict))
    own: CandidateView = base.candidates[0].model_copy(
        update={"source": made.kernel.source, "space": made.space}
    )
    fields = {
        "job": made,
        "dispatch": tuple(entries),
        "comparisons": tuple(comparisons),
        "candidates": (own,),
        "between": (),
    }
    return base.model_copy(update=fields | changes)


def loaded(path: Path) -> dict[int, Configuration]:
    """A table as engines load it: every key but that of the version is a batch size, in the file's order."""
    read = json.loads(path.read_text())
    read.pop("triton_version", None)
    return {int(key): value for key, value in read.items()}


def nearest(rows: Mapping[int, Configuration], size: int) -> int:
    """The key that vLLM and SGLang take."""
    return min(rows, key=lambda key: abs(key - size))


def nearest_by_ratio(rows: Mapping[int, Configuration], size: int) -> int:
    """The key that kernels of the hub take."""
    return min(rows, key=lambda key: abs(math.log(size / key)))


def written(folder: Path, form: str, shown: JobResult, **options: str) -> tuple[Path, dict[str, Any]]:
    """The table that an export writes, and its part of the evidence."""
    paths = write_export(ExportRequest(shown, table=options), form, folder)
    (table,) = [p for p in paths if p.name not in ("evidence.json", "pull-request.md")]
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["device"] == shown.device
    assert evidence["table"]["file"] == str(table.relative_to(folder))
    return table, evidence["table"]


@pytest.mark.parametrize(
    ("form", "look_up"),
    [("vllm-config", nearest), ("sglang-config", nearest), ("hf-config", nearest_by_ratio)],
)
def test_tuned_sizes_get_their_row_and_a_size_without_a_gain_the_default(
    form: str, look_up: Any, tmp_path: Path
) -> None:
    options = {} if form == "hf-config" else MOE
    table, evidence = written(tmp_path, form, tuned(), **options)
    rows = loaded(table)
    assert rows == FAST | {256: DEFAULT}
    assert list(rows) == sorted(rows)
    kinds = {r["key"]: r["kind"] for r in evidence["rows"]}
    assert kinds == {16: "tuned", 64: "tuned", 256: "pinned", 1024: "tuned"}
    # What evidence says of every batch size is what the look-up does.
    served = {m: look_up(rows, m) for m in SIZES}
    for found in evidence["rows"]:
        first, last = found["serves"]
        assert [m for m in SIZES if served[m] == found["key"]] == list(range(first, (last or SIZES[-1]) + 1))
    assert evidence["rows"][-1]["serves"][1] is None
    for m in TUNED:
        assert rows[served[m]] == FAST.get(m, DEFAULT)
    # Without further pins, sizes that nobody measured run their neighbour's.
    assert rows[served[41]] == FAST[64]
    assert rows[served[4096]] == FAST[1024]


@pytest.mark.parametrize("form", ["vllm-config", "sglang-config"])
@pytest.mark.parametrize(
    ("dtype", "shape"), [("", ""), ("fp8_w8a8", ""), ("fp8_w8a8", "128,128"), ("int8_w8a8", "")]
)
def test_with_others_pinned_a_size_that_was_not_measured_keeps_the_default_of_the_engine(
    form: str, dtype: str, shape: str, tmp_path: Path
) -> None:
    winners = {m: {**c, "BLOCK_SIZE_K": 128} for m, c in FAST.items()}
    parameters = [p if p["name"] != "BLOCK_SIZE_K" else {**p, "values": [128]} for p in PARAMETERS]
    shown = tuned(winners, parameters)
    options = MOE | {"dtype": dtype, "block_shape": shape, "pin": "others"}
    table, evidence = written(tmp_path, form, shown, **options)
    rule = {"vllm-config": vllm_default, "sglang-config": sglang_default}[form](
        8, dtype, (128, 128) if shape else None
    )
    assert rule is not None
    assert evidence["default_rule"] == rule.source
    rows = loaded(table)
    for m in SIZES:
        want = winners.get(m) or ({**DEFAULT, "BLOCK_SIZE_K": 128} if m == 256 else rule.configuration(m))
        assert rows[nearest(rows, m)] == want, m
    tuned_keys = [r["key"] for r in evidence["rows"] if r["kind"] == "tuned"]
    assert tuned_keys == list(FAST)
    assert all(r["speedup"]["low"] > 1 for r in evidence["rows"] if r["kind"] == "tuned")


@pytest.mark.parametrize("rule_of", [vllm_default, sglang_default])
@pytest.mark.parametrize("experts", [1, 8, 64, 512])
@pytest.mark.parametrize(("dtype", "shape"), [("", None), ("fp8_w8a8", None), ("fp8_w8a8", (64, 128))])
def test_a_default_changes_at_its_steps_only(
    rule_of: Any, experts: int, dtype: str, shape: tuple[int, int] | None
) -> None:
    rule = rule_of(experts, dtype, shape)
    sizes = range(2, 70_000)
    changes = {m for m in sizes if rule.configuration(m) != rule.configuration(m - 1)}
    assert changes <= set(rule.steps)
    assert set(rule.configuration(1)) == set(FIELDS)


def test_defaults_are_those_of_the_engines() -> None:
    """Worked by hand from the engines' rules: few tokens, many, many an expert."""
    vllm = vllm_default(8, "", None)
    assert vllm is not None
    assert [tuple(vllm.configuration(m).values()) for m in (1, 64, 512, 1032)] == [
        (16, 64, 128, 1, 4, 4),
        (32, 64, 128, 1, 4, 3),
        (64, 128, 64, 1, 8, 3),
        (128, 128, 64, 16, 8, 3),
    ]
    block = vllm_default(8, "fp8_w8a8", (128, 64))
    assert block is not None
    assert [tuple(block.configuration(m).values()) for m in (4, 8, 16, 17, 65)] == [
        (16, 64, 64, 1, 4, 4),
        (16, 64, 64, 1, 4, 3),
        (16, 128, 64, 1, 4, 3),
        (16, 128, 64, 32, 4, 3),
        (64, 128, 64, 32, 4, 3),
    ]
    sglang, fp8 = sglang_default(8, "", None), sglang_default(8, "fp8_w8a8", None)
    assert sglang is not None
    assert fp8 is not None
    assert [tuple(sglang.configuration(m).values()) for m in (8, 9)] == [
        (16, 32, 64, 1, 4, 3),
        (64, 64, 32, 8, 4, 3),
    ]
    assert [tuple(fp8.configuration(m).values()) for m in (8, 9)] == [
        (64, 128, 128, 1, 4, 4),
        (128, 256, 128, 32, 8, 4),
    ]
    assert vllm_default(8, "int4_w4a16", (128, 128)) is None
    assert sglang_default(8, "int8_w8a8", (128, 128)) is None


@pytest.mark.parametrize(
    ("form", "device", "options", "path"),
    [
        ("vllm-config", "NVIDIA H100 80GB HBM3", {}, "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json"),
        ("vllm-config", "NVIDIA H200 NVL", {}, "E=8,N=14336,device_name=NVIDIA_H200.json"),
        ("vllm-config", "AMD Radeon / W7900", {}, "E=8,N=14336,device_name=AMD_Radeon_W7900.json"),
        (
            "vllm-config",
            "NVIDIA L4",
            {"dtype": "fp8_w8a8", "block_shape": "[128, 128]"},
            "E=8,N=14336,device_name=NVIDIA_L4,dtype=fp8_w8a8,block_shape=[128,128].json",
        ),
        (
            "sglang-config",
            "NVIDIA H200 NVL",
            {"dtype": "fp8_w8a8", "block_shape": "128,128"},
            "configs/triton_3_6_0/E=8,N=14336,device_name=NVIDIA_H200_NVL,dtype=fp8_w8a8,"
            "block_shape=[128, 128].json",
        ),
        (
            "sglang-config",
            "NVIDIA L4",
            {"dtype": "int8_w8a8", "per_channel_quant": "true", "down": "true", "triton": "3.9.1+git1a2b"},
            "configs/triton_3_9_1/E=8,N=14336,device_name=NVIDIA_L4,dtype=int8_w8a8,per_channel_quant=True"
            "_down.json",
        ),
        ("hf-config", "NVIDIA L4", {}, "configs/N=4096,K=1024,device_name=NVIDIA_L4.json"),
        ("hf-config", "NVIDIA L4", {"names": "K"}, "configs/K=1024,device_name=NVIDIA_L4.json"),
    ],
)
def test_files_have_the_names_that_engines_look_for(
    form: str, device: str, options: dict[str, str], path: str
) -> None:
    winners = {m: {**c, "BLOCK_SIZE_K": 128} for m, c in FAST.items()}
    parameters = [p if p["name"] != "BLOCK_SIZE_K" else {**p, "values": [128]} for p in PARAMETERS]
    given = options if form == "hf-config" else MOE | options
    assert engine_table(tuned(winners, parameters, device=device), form, given).path == path


def test_the_version_of_triton_is_in_the_file_of_vllm_alone() -> None:
    assert json.loads(engine_table(tuned(), "vllm-config", MOE).text())["triton_version"] == "3.6.0"
    without = {k: v for k, v in MOE.items() if k != "triton"}
    assert "triton_version" not in json.loads(engine_table(tuned(), "vllm-config", without).text())
    assert "triton_version" not in json.loads(engine_table(tuned(), "sglang-config", MOE).text())
    with pytest.raises(InvalidInput, match=r"triton.*missing.*--table triton=3.6.0"):
        engine_table(tuned(), "sglang-config", without)


def test_labels_of_the_job_stand_for_options_and_options_win() -> None:
    labels = {"table.E": "64", "table.N": "1024", "table.names": "N", "model": "mixtral"}
    shown = tuned(labels=labels)
    assert engine_table(shown, "vllm-config", {}).path.startswith("E=64,N=1024,")
    assert engine_table(shown, "vllm-config", {"E": "8"}).path.startswith("E=8,N=1024,")


def test_given_pins_and_keys_replace_defaults_and_never_a_verified_row() -> None:
    pin = {"triton_version": "3.6.0", "1": row(128), "64": row(128), "256": row(64)}
    table = engine_table(tuned(), "vllm-config", MOE | {"pin": json.dumps(pin)})
    origins = {key: r.origin for key, r in table.rows.items()}
    assert origins == {1: "given", 16: "verified", 64: "verified", 256: "given", 1024: "verified"}
    assert table.rows[256].configuration == row(64)
    assert table.rows[64].configuration == FAST[64]
    table = engine_table(tuned(), "vllm-config", MOE | {"pin": "2, 64,8192"})
    origins = {key: r.origin for key, r in table.rows.items()}
    assert [key for key, origin in origins.items() if origin == "engine's default"] == [2, 8192]
    assert origins[64] == "verified"


def test_what_is_not_verified_is_no_row() -> None:
    shown = tuned()
    first, second, third, last = shown.comparisons
    interval = Interval(estimate=1.1, low=0.99, high=1.2)
    changed = (
        first.model_copy(update={"verdict": Verdict.NOISY}),
        second.model_copy(update={"configuration_key": "0" * 16}),
        third,
        last.model_copy(update={"speedup": interval}),
    )
    for k in range(3):
        kept = [c if i not in {(0, 1, 3)[k]} else changed[i] for i, c in enumerate(shown.comparisons)]
        table = engine_table(shown.model_copy(update={"comparisons": tuple(kept)}), "vllm-config", MOE)
        size = (16, 64, 1024)[k]
        assert table.rows[size].configuration == DEFAULT
        assert [key for key, r in table.rows.items() if r.is_tuned] == [m for m in FAST if m != size]
    with pytest.raises(InvalidInput, match="no workload of the result is verified as faster"):
        engine_table(shown.model_copy(update={"comparisons": changed}), "vllm-config", MOE)


WITHOUT_GROUP = [p for p in PARAMETERS if p["name"] != "GROUP_SIZE_M"]
EXTRA: list[dict[str, Any]] = [*PARAMETERS, {"name": "UNROLL", "values": [1, 2]}]
TWO = [{"M": m, "N": n, "K": 1024} for m, n in ((16, 4096), (64, 8192))]


@pytest.mark.parametrize(
    ("form", "options", "shown", "words"),
    [
        ("vllm-config", {}, {}, r"--table E: is missing.*--table E=8.*table\.E"),
        ("vllm-config", {"E": "8"}, {}, r"--table N: is missing.*intermediate size"),
        ("vllm-config", MOE | {"E": "eight"}, {}, r"--table E: 'eight' is no whole number"),
        ("vllm-config", MOE | {"e": "8"}, {}, r"takes no e; it takes .*E, N"),
        ("vllm-config", MOE | {"batch": "Q"}, {}, r"--table batch: Q is no dimension.*K, M, N"),
        ("vllm-config", MOE | {"dtype": "bfloat16"}, {}, r"dtype: bfloat16 is not in the names"),
        ("vllm-config", MOE | {"dtype": "../up"}, {}, r"cannot be a part of a file's name"),
        ("vllm-config", MOE | {"block_shape": "128"}, {}, r"1 numbers instead of two"),
        ("vllm-config", MOE | {"block_shape": "128,48"}, {}, r"BLOCK_SIZE_K.*128.*no multiple.*48"),
        ("sglang-config", MOE | {"block_shape": "128,48"}, {}, r"BLOCK_SIZE_K.*128.*no multiple.*48"),
        ("vllm-config", MOE | {"block_shape": "32,32"}, {}, r"vLLM would run 32.*leave values above 32 out"),
        ("vllm-config", MOE | {"pin": "0"}, {}, r"pin: '0' is no whole number"),
        ("vllm-config", MOE | {"pin": "{"}, {}, r"pin: is no table of rows"),
        ("vllm-config", MOE | {"pin": '{"x": {}}'}, {}, r"pin: 'x' is no batch size"),
        ("vllm-config", MOE | {"pin": '{"1": {"num_warps": 4}}'}, {}, r"the pin 1 has no BLOCK_SIZE_M"),
        ("vllm-config", MOE | {"pin": "1"}, {"device": "AMD Instinct MI300X"}, r"default of vLLM.*not known"),
        ("hf-config", {"pin": "1"}, {}, r"default of a kernel.*not known here; give the rows"),
        ("hf-config", {"N": "8"}, {}, r"--table N: N is 8 and 4096 in the job and the option"),
        ("hf-config", {"names": "N,Q"}, {}, r"--table names: Q is in the file's name, and no dimension"),
        ("hf-config", {}, {"device": "AMD / X"}, r"slash in 'AMD / X'"),
        ("sglang-config", MOE | {"triton": "3.6"}, {}, r"'3.6' is no version of Triton"),
        ("sglang-config", MOE | {"down": "yes"}, {}, r"down: 'yes' is neither true nor false"),
        ("vllm-config", MOE, {"device": "NVIDIA L4, NVIDIA A100"}, r"tune for one device"),
        ("vllm-config", MOE, {"dimensions": TWO, "options": {}}, r"batch: is missing: which of M, N"),
        ("vllm-config", MOE | {"batch": "M"}, {"dimensions": TWO}, r"N varies between the workloads, too"),
        (
            "vllm-config",
            MOE,
            {"winners": {16: {**row(), "UNROLL": 2}}, "parameters": EXTRA},
            r"has UNROLL, which vLLM does not know",
        ),
        (
            "sglang-config",
            MOE,
            {
                "winners": {16: {k: v for k, v in row().items() if k != "GROUP_SIZE_M"}},
                "parameters": WITHOUT_GROUP,
            },
            r"has no GROUP_SIZE_M, which SGLang needs; declare each as a parameter",
        ),
    ],
)
def test_what_no_table_can_hold_is_refused_with_the_fix(
    form: str, options: dict[str, str], shown: dict[str, Any], words: str, tmp_path: Path
) -> None:
    made = tuned(**{k: v for k, v in shown.items() if k != "options"})
    with pytest.raises(InvalidInput, match=words):
        write_export(ExportRequest(made, table=options), form, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_changed_source_is_no_row_since_the_engine_runs_its_own() -> None:
    shown = tuned()
    candidate = shown.candidates[0].model_copy(update={"source": "// another"})
    with pytest.raises(InvalidInput, match="a changed source, which no engine runs"):
        engine_table(shown.model_copy(update={"candidates": (candidate,)}), "hf-config", {})


def test_kernels_of_the_hub_take_any_parameter() -> None:
    shown = tuned({16: {"UNROLL": 2}}, [{"name": "UNROLL", "values": [1, 2]}])
    assert json.loads(engine_table(shown, "hf-config", {}).text())["16"] == {"UNROLL": 2}


def test_a_command_line_and_a_program_write_the_same(tmp_path: Path) -> None:
    shown = tuned()
    (tmp_path / "result.json").write_text(shown.model_dump_json())
    words = ["export", str(tmp_path), "--as", "vllm-config", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--table", "E=8", "--table", "N=14336"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    Result(shown).export("vllm-config", tmp_path / "other", table={"E": "8", "N": "14336"})
    name = "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json"
    for file in (name, "evidence.json"):
        assert (tmp_path / "out" / file).read_text() == (tmp_path / "other" / file).read_text()
    for bad, message in ((["E"], "'E' is no KEY=VALUE"), (["E=8", "E=9"], "E is given twice")):
        with pytest.raises(InvalidInput, match=message):
            export([str(tmp_path)], "vllm-config", tmp_path / "x", "", "", "fallback", bad)
    with pytest.raises(InvalidInput, match="c is no table; only vllm-config"):
        export([str(tmp_path)], "c", tmp_path / "x", "", "", "fallback", ["E=8"])


def sized(*sizes: int, winners: Mapping[int, Configuration] = FAST, **changes: Any) -> JobResult:
    """A job over some batch sizes."""
    return tuned(winners, dimensions=[{"M": m, "N": 4096, "K": 1024} for m in sizes], **changes)


def test_jobs_with_sizes_of_one_table_make_one_file(tmp_path: Path) -> None:
    first, second, third = sized(16, 64), sized(1024), sized(256, winners={}, id="j" * 26)
    whole = engine_table(tuned(), "vllm-config", MOE)
    table = engine_table(first, "vllm-config", MOE, [second, third])
    assert table.text() == whole.text() and table.path == whole.path
    assert [(key, row.origin) for key, row in table.rows.items()] == [
        *((16, "verified"), (64, "verified"), (256, "job's default"), (1024, "verified"))
    ]
    with pytest.raises(InvalidInput, match="M 64 is in two jobs"):
        engine_table(first, "vllm-config", MOE, [sized(64)])
    with pytest.raises(InvalidInput, match=r"is for E=8.*NVIDIA_L4.*export them apart"):
        engine_table(first, "vllm-config", MOE, [sized(1024, device="NVIDIA L4")])
    with pytest.raises(InvalidInput, match=r"was compiled by triton 3\.5\.0"):
        engine_table(first, "vllm-config", MOE, [sized(1024, compiler="triton 3.5.0")])
    folders = [tmp_path / name for name in "abc"]
    for folder, shown in zip(folders, (first, second, third), strict=True):
        folder.mkdir()
        (folder / "result.json").write_text(shown.model_dump_json())
    options = [f"{key}={value}" for key, value in MOE.items()]
    jobs = [str(folder) for folder in folders]
    export(jobs, "vllm-config", tmp_path / "out", "", "", "fallback", options)
    assert (tmp_path / "out" / table.path).read_text() == table.text()
    evidence = json.loads((tmp_path / "out" / "evidence.json").read_text())
    assert [other["id"] for other in evidence["more"]] == [second.id, third.id]
    with pytest.raises(InvalidInput, match=r"torch is no table; only .* are made of several jobs"):
        export(jobs, "torch", tmp_path / "x", "", "", "fallback")
