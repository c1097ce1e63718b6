"""Every bench is called as its text says, `python -m benchmarks.X --out PATH`, on work of a second or two.

Here it starts, reads its arguments and writes its record. What takes minutes is replaced by rows of the last
record; how a bench measures is tested beside its parts.
"""

import ast
import gzip
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.provenance import record_folder
from benchmarks.triton.moe import Layer, default_configuration
from db import migrate
from tests.benchmarks.test_opencl_corpus import BINDING
from warpsmith.domain.device import Backend
from warpsmith.job_files.jobfile import load_job
from warpsmith.sandbox import probe_devices

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
Bench = Callable[..., int]

ON_A_GPU = {
    "agents.operators": ("--state", "{tmp}"),
    "production.run": ("--jobs-dir", "{tmp}"),
    "triton.tutorials": ("--sources", "{tmp}"),
    "triton.record_moe": ("--sources", "{tmp}", "--layer", "qwen"),
    "triton.missing_tables": ("tune", "--layers", "nano-ep8", "--kernel", "{tmp}", "--known", "{tmp}"),
    "triton.attacks": (),
}
"""They measure on CUDA; here they read their arguments and say that there is no device."""
IN_ITS_OWN_ENVIRONMENT = "search.kernel_tuner_peer"
"""Its packages are those of `benchmarks/search/requirements.in`."""


def recorded(name: str) -> Any:
    """The last record of that name."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def written(path: Path) -> Any:
    """A record that a bench has just written."""
    return json.loads(path.read_text())


def programs() -> Iterator[str]:
    """Modules of `benchmarks` that are run."""
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        if any(isinstance(n, ast.FunctionDef) and n.name == "main" for n in ast.parse(path.read_text()).body):
            yield ".".join(path.relative_to(ROOT / "benchmarks").with_suffix("").parts)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """Calls one with arguments; its exit status. What it says of a failure is raised."""

    def call(name: str, *words: object) -> int:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        try:
            return int(importlib.import_module(f"benchmarks.{name}").main() or 0)
        except SystemExit as end:
            if isinstance(end.code, str):
                raise
            return int(end.code or 0)

    return call


@pytest.mark.parametrize("name", list(programs()))
def test_a_bench_makes_the_folder_of_its_records_before_it_works(name: str) -> None:
    """A bench on a rented machine ran for minutes and then had no folder to write to."""
    text = (ROOT / "benchmarks" / name.replace(".", "/")).with_suffix(".py").read_text()
    writes_into = re.search(r"\bout / f?\"", text) and '"--out"' in text
    assert not writes_into or '"--out", type=record_folder' in text


def test_a_folder_of_records_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert record_folder(str(tmp_path / "of" / "today")).is_dir()


@pytest.mark.parametrize("name", [p for p in programs() if p != IN_ITS_OWN_ENVIRONMENT])
def test_a_bench_says_what_it_does_and_where_its_record_goes(
    name: str, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(name, "--help") == 0
    said = capsys.readouterr().out
    assert "--out" in said
    assert importlib.import_module(f"benchmarks.{name}").__doc__


def test_every_bench_is_called_here() -> None:
    tree = ast.parse(Path(__file__).read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    called = {c.args[0].value for c in calls if c.func.id == "bench" and isinstance(c.args[0], ast.Constant)}  # type: ignore[attr-defined]
    others = {*ON_A_GPU, IN_ITS_OWN_ENVIRONMENT, "mutation.__main__"}  # the last: see `test_mutation`
    assert {p for p in programs() if p not in called} == others


@pytest.mark.parametrize("name", ON_A_GPU)
def test_a_bench_for_a_gpu_tells_that_there_is_none(
    name: str, bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if any(d.backend is Backend.CUDA for d in probe_devices().devices):
        pytest.skip("there is one: the bench would run for minutes")
    words = [w.format(tmp=tmp_path) for w in ON_A_GPU[name]]
    try:
        assert bench(name, "--out", tmp_path / "out", *words) == 2
        told = capsys.readouterr().err
    except SystemExit as end:
        told = str(end.code)
    assert "no cuda device" in told.lower()


def test_gains_picture(bench: Bench, tmp_path: Path) -> None:
    assert bench("agents.gains_picture", "--out", tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"gains-dark.svg", "gains-light.svg"}


def test_first_hour(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = recorded("first-hour/demo")["runs"][0]
    monkeypatch.setattr("benchmarks.first_hour.demo.run", lambda *a: demo)
    assert bench("first_hour.demo", "--runs", 2, "--busy", 0, "--no-clone", "--out", tmp_path) == 0
    assert written(tmp_path / "demo.json")["runs"] == [demo, demo]


def test_what_init_makes_of_kernels_as_they_lie(
    bench: Bench, mirrors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = ("--mirrors", mirrors, "--checkouts", tmp_path / "trees", "--out", tmp_path / "out")
    assert bench("first_hour.door", *on, "--jobs", 1) == 0
    rows = [json.loads(line) for line in (tmp_path / "out/door-known.jsonl").read_text().splitlines()]
    assert [(r["backend"], r["outcome"], r["todo"]) for r in rows] == [
        ("opencl", "template compiles", 1),
        ("cuda", "template compiles", 1),
    ]
    assert "| nobody/nothing | 2 | 2 |" in (tmp_path / "out/door-known.md").read_text()


def test_triton(bench: Bench, tmp_path: Path) -> None:
    for name in ("softmax", "layer_norm", "matmul", "matmul_configs", "attention", "moe"):
        (tmp_path / f"{name}.py").write_text("")
    assert bench("triton.sources", "--out", tmp_path) == 0, "what is there is not fetched"
    recording = RESULTS / "triton" / "moe-qwen.json.gz"
    words = ("--recording", recording, "--seeds", 1, "--share", 0.01, "--out", tmp_path, "--known", tmp_path)
    row = default_configuration(Layer("small", 64, 1536, 2048, 8), 16)
    (tmp_path / "E=64,N=1280,device_name=NVIDIA_H100_80GB_HBM3.json").write_text(json.dumps({"16": row}))
    assert bench("triton.tables", *words) == 0
    found = written(tmp_path / "tables-qwen.json")
    assert found["evaluations"] == int(0.01 * found["exhaustive_evaluations"])
    assert all(v >= 1.0 for method in found["methods"].values() for v in method["median"].values())


def test_opencl_corpus(bench: Bench, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs.yaml").write_text(BINDING)
    monkeypatch.setattr("benchmarks.opencl_corpus.bindings.BINDINGS", tmp_path / "jobs.yaml")
    jobs = tmp_path / "jobs"
    assert bench("opencl_corpus.bindings", "--checkouts", corpus, "--seconds", 9, "--out", jobs) == 0
    (file,) = jobs.iterdir()
    assert file.name == "mine_a.cl_shift.json"
    assert load_job(file).budget.seconds == 9


def test_production(bench: Bench, checkouts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("--checkouts", checkouts, "--out", tmp_path / "out")
    assert bench("production.jobs", *where, "--jobs", "no_such_job") == 0

    row = {"job": "stencil", "configuration": {}, "accepted": True, "layer": "", "reason": "", "seconds": 1.0}
    monkeypatch.setattr("benchmarks.production.honest.run", lambda *a: ([row], []))
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    job = load_job(ROOT / "examples" / "stencil" / "opencl.yaml")
    (jobs / "stencil.json").write_text(job.model_dump_json())
    assert bench("production.honest", "--jobs-dir", jobs, "--out", tmp_path) == 0
    assert written(tmp_path / "honest.json")["rows"] == [row]


def test_search(bench: Bench, spaces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("--spaces", spaces, "--seeds", 1, "--processes", 1, "--out", tmp_path / "out")
    assert bench("search.__main__", *where, "--methods", "warpsmith", "random") == 0
    assert {"search.json", "search.md", "search.svg"} <= {p.name for p in (tmp_path / "out").iterdir()}
    monkeypatch.setattr("benchmarks.search.prior.POINTS", 10)
    monkeypatch.setattr("benchmarks.search.prior.DRAWS", 1)
    assert bench("search.prior", "--spaces", spaces, "--out", tmp_path / "prior.json") == 0
    assert written(tmp_path / "prior.json")


def test_side_by_side(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side_by_side = importlib.import_module("benchmarks.search.side_by_side")
    asked: list[str] = []

    def ran(python: str, kernel: str, program: str, told: str) -> dict[str, Any]:
        asked.append(program)
        (page,) = (p for p in side_by_side.PAGES if side_by_side.page_code(p)["kernel"] == kernel)
        problem = side_by_side.problem_of(side_by_side.page_code(page)["kernel_tuner"])
        last = {name: values[-1] for name, values in problem["tune_params"].items()}
        winner = last if python == "theirs" else None
        kernel_of = {} if winner else {"kernel": side_by_side.as_launched(kernel, problem)}
        return {"seconds": 1.0, "load_before": 0.1, "evaluations": 3, "winner": winner, **kernel_of}

    monkeypatch.setattr(side_by_side, "ran", ran)
    monkeypatch.setattr(side_by_side, "LAUNCHES", 3)
    wanted = ("--peer", "theirs", "--seconds", 7, "--busy", 1, "--out", tmp_path)
    assert bench("search.side_by_side", *wanted) == 0
    assert ["tune_kernel" in program for program in asked] == [True, *[False] * 4, True, True, False, False]
    assert ["rewrite" in program for program in asked] == [False, False, True, True, *[False] * 4, True]
    assert all("seconds=7" in program for program in asked if "warpsmith.tune" in program)
    kernels = written(tmp_path / "side-by-side-busy.json")["kernels"]
    assert list(kernels) == ["kernel-tuner", "convolution", "nbody"]
    for found in kernels.values():
        assert len(found["clock"]) == 4
        assert all(row["right"] and row["min_us"] > 0 for row in found["clock"].values())
    assert "| Kernel Tuner | 1 | 1.0 | 3 | block_size_x=64" in (tmp_path / "side-by-side-busy.md").read_text()


@pytest.mark.parametrize("name", ["side-by-side", "side-by-side-busy"])
def test_the_figures_beside_kernel_tuner_are_of_the_programs_on_the_pages(name: str) -> None:
    side_by_side = importlib.import_module("benchmarks.search.side_by_side")
    record = recorded(f"search/{name}")["kernels"]
    for page in side_by_side.PAGES:
        code, found = side_by_side.page_code(page), record[page.stem]
        assert found["code"] == code, f"{page} has changed: run the bench again"
        assert all(row["right"] for row in found["clock"].values())
        assert page != side_by_side.PAGE or all(
            len(code[name].splitlines()) <= 15 for name in ("kernel_tuner", "warpsmith")
        )


def test_recordings_of_the_hub(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = {"1": {"A": 1, "time": 2.0, "times": [2.0]}}
    said = gzip.compress(json.dumps({"tune_params": {"A": [1]}, "cache": cache}).encode())
    monkeypatch.setattr("benchmarks.search.hub.RECORDINGS", {"folder/pnpoly": ("A",)})
    ran: list[list[str]] = []

    class Shown:
        stdout = said

    def show(command: list[str], **_: Any) -> Shown:
        ran.append(command)
        return Shown()

    monkeypatch.setattr("benchmarks.search.hub.subprocess.run", show)
    assert bench("search.hub", "--hub", tmp_path, "--out", tmp_path / "out") == 0
    assert ran and (tmp_path / "out" / "pnpoly-A.json.gz").exists()


def test_service(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def known(name: str) -> Callable[..., Any]:
        def run(*_: Any, **options: Any) -> Any:
            asked.append(options)
            return recorded(name)

        return run

    for name, record in (
        ("chaos", "service-chaos"),
        ("chaos_embedded", "service-chaos-embedded"),
    ):
        monkeypatch.setattr(f"benchmarks.service.{name}.run", known(record))
    assert bench("service.chaos", "--jobs", 3, "--seed", 7, "--out", tmp_path / "a.json") == 0
    assert bench("service.chaos_embedded", "--jobs", 3, "--seed", 8, "--out", tmp_path / "b.json") == 0
    assert [a["seed"] for a in asked] == [7, 8]
    assert all(written(tmp_path / f"{n}.json")["failures"] == [] for n in "ab")

    class Server:
        url = "postgresql://nobody@127.0.0.1/nothing"

        def __enter__(self) -> "Server":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("benchmarks.service.fuzz.PostgresProcess", Server)
    monkeypatch.setattr("benchmarks.service.fuzz.run", known("service-fuzz"))
    assert bench("service.fuzz", "--cases", 10**6, "--out", tmp_path / "c.json") == 1, "too few cases"
    assert bench("service.fuzz", "--cases", 10, "--out", tmp_path / "c.json") == 0

    scale = recorded("service-scale")
    monkeypatch.setattr("benchmarks.service.scale.run", lambda *a: a[-1]({"rows": scale["rows"]}))
    assert bench("service.scale", "--workers", "1", "--out", tmp_path / "d.json") == 0
    assert written(tmp_path / "d.json")["rows"] == scale["rows"]

    monkeypatch.setattr("benchmarks.service.fixed_cost.measured", lambda *a: {"ended": "done"})
    monkeypatch.setattr("benchmarks.service.fixed_cost.page", lambda record: record["ended"])
    assert bench("service.fixed_cost", "--smoke", "--out", tmp_path / "e.json") == 0
    assert written(tmp_path / "e.json")["ended"] == "done"


def test_trust(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = recorded("trust-pocl")["cases"]
    monkeypatch.setattr("benchmarks.trust.corpus.run_cases", lambda *a: cases)
    assert bench("trust.corpus", "--out", tmp_path) == 0, "every case is as its file states"
    assert len(written(tmp_path / "trust-pocl.json")["cases"]) == len(cases)
    held = next(r for r in cases if r["status"] == "held")
    changed = [r | {"as_expected": r is not held} for r in cases]
    monkeypatch.setattr("benchmarks.trust.corpus.run_cases", lambda *a: changed)
    assert bench("trust.corpus", "--out", tmp_path) == 1, "one is open, and its file says held"
    found = written(tmp_path / "trust-pocl.json")["cases"]
    assert [r["name"] for r in found if not r["as_expected"]] == [held["name"]]

    rows = {r["defence"]: r for r in recorded("defences-pocl")["defences"]}
    # A defence that is younger than the record has no row in it.
    monkeypatch.setattr(
        "benchmarks.trust.defences.through",
        lambda device, off, cases: rows.setdefault(off, rows["guards"] | {"defence": off}),
    )
    assert bench("trust.defences", "--out", tmp_path) == 0, "without a defence some cheat comes through"
    assert {r["defence"]: r for r in written(tmp_path / "defences-pocl.json")["defences"]} == rows
    rows["floor"] |= {"through": None}
    assert bench("trust.defences", "--out", tmp_path) == 1, "one defence was needed by no cheat"
    assert [
        r["defence"] for r in written(tmp_path / "defences-pocl.json")["defences"] if r["through"] is None
    ] == ["floor"]

    same = recorded("same-kernel-cuda")["comparisons"]
    monkeypatch.setattr("benchmarks.trust.same_kernel.compare", lambda *a: same)
    assert bench("trust.same_kernel", "--out", tmp_path) == 0
    assert len(written(tmp_path / "same-kernel-pocl.json")["comparisons"]) == len(same)


def test_a_series_with_a_model(bench: Bench, tmp_path: Path) -> None:
    """What it does with jobs and replies is tested in `test_agents_gpu`, what a history holds in
    `tests/agents/test_recorded_jobs`."""
    state = tmp_path / "state"
    (state / "data").mkdir(parents=True)
    assert bench("agents.gpu", "record", "--state", state, "--out", tmp_path / "out") == 1
    migrate.upgrade(f"sqlite:///{state / 'data' / 'warpsmith.db'}")
    (state / "jobs.json").write_text("{}")
    assert bench("agents.history", "--state", state, "--out", tmp_path / "h.db.xz") == 0
    assert (tmp_path / "h.db.xz").stat().st_size > 0
    words = ("--state", state, "--jobs", "none", "--backend", "opencl", "--out", tmp_path / "clock.json")
    assert bench("agents.clock", *words) == 1
    assert written(tmp_path / "clock.json")["jobs"]["none"] == {"failed": "it was not posted"}
