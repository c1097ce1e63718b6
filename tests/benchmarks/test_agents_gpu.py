"""Questions to a model as files, and the record of the arms, with a real service on this machine's device."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agents import clock, gpu
from benchmarks.agents.arms_page import interval
from benchmarks.agents.clock_page import call_figures, means
from benchmarks.agents.one_call import Calls, call_blocks
from tests.agents.replies import as_text, template
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import CompilePool
from warpsmith.testing.jobs import DEVICE, scale_job


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu", *(str(w) for w in words)])
    return gpu.main()


def test_replies_are_files_and_jobs_go_on_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, jobs = tmp_path / "state", tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "scale.json").write_text(scale_job().model_dump_json())
    limits = ("--seconds", 300, "--trials", 9, "--arms", "rules", "direct", "template")
    assert call(monkeypatch, "go", "--state", state, "--jobs-dir", jobs, *limits) == 1
    asked = {p.name.split(".")[1]: p.name for p in (state / "questions").iterdir()}
    assert set(asked) == {"direct", "template"}, "the rules wait for nobody"
    assert (state / "results" / "scale.rules.0.json").exists()

    (state / "replies" / asked["direct"]).write_text("no JSON")
    (state / "replies" / asked["template"]).write_text(as_text(template()))
    assert call(monkeypatch, "go", "--state", state) == 1, "a reply of no use leaves the question open"
    assert "no JSON object" in (state / "refused" / asked["direct"]).read_text()
    (row,) = [json.loads(p.read_text()) for p in (state / "results").glob("scale.template.*")]
    assert row["state"] == "done"
    assert [c["written"] for c in row["candidates"]] == [True, False], "the rules' own stands beside it"
    assert row["first_trials"][0]["first"]["kind"] == "measured"
    assert "CHUNK" in row["steps"][0]["reply"]

    assert call(monkeypatch, "record", "--state", state, "--out", tmp_path / "out") == 0
    page = (tmp_path / "out" / "agents-gpu.md").read_text()
    assert "Not ended: scale.direct.0" in page
    assert "__kernel" not in (tmp_path / "out" / "agents-gpu.json").read_text()
    assert "| scale | 0 | template |" in page
    ended_jobs_have_both_clocks(state, tmp_path / "clock" / "of.json", monkeypatch)


def ended_jobs_have_both_clocks(state: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same state, since a service takes a while: one has ended, one waits, one was never posted."""
    names = ("scale.rules.0", "scale.direct.0", "nobody.rules.0")
    words = ("--state", state, "--jobs", *names, "--backend", "opencl", "--out", out)
    monkeypatch.setattr(sys, "argv", ["clock", *(str(w) for w in words)])
    assert clock.main() == 1, "two have no figures"
    record = json.loads(out.read_text())
    (first, second) = record["jobs"]["scale.rules.0"]["rows"]
    for row in (first, second):
        assert row["compared"] == ["y"]
        assert row["problems"] == []
        assert row["right"]
        assert row["calls"]["mean_us"][0] > row["device"]["hot"]["base_us"], "the host is within a call"
        assert {"hot", "cold"} == set(row["device"])
    assert record["jobs"]["scale.direct.0"] == {"failed": "it has not ended"}
    assert record["jobs"]["nobody.rules.0"] == {"failed": "it was not posted"}
    page = out.with_suffix(".md").read_text()
    assert f"| {first['workload']}" in page
    assert "No figures: it was not posted." in page
    assert "__kernel" not in out.read_text() + page

    with clock.database_of(state) as database:
        found = clock.Ended.read(database, json.loads((state / "jobs.json").read_text())["scale.rules.0"])
    good = as_served(found, lambda source: source)
    assert good["right"]
    assert set(good["errors"]) == {"A", "B"}
    assert {good["device"][cache]["from"] for cache in ("hot", "cold")} == {"here"}
    ratio = good["calls"]["ratio_of_medians"]
    assert 0 < ratio["low"] <= ratio["estimate"] <= ratio["high"]
    wrong = as_served(found, lambda source: source.replace("2.0f", "3.0f"))
    assert not wrong["right"]
    assert "B: correctness" in wrong["problems"][0]
    broken = as_served(found, lambda source: source + "no code")
    assert broken["problems"] == ["the served kernel does not compile here"]


def as_served(found: clock.Ended, change: Callable[[str], str]) -> dict[str, Any]:
    """The row of the first workload if the user's kernel, so changed and in another configuration, served."""
    job = found.result.job
    kernel = job.kernel.model_copy(update={"source": change(job.kernel.text)})
    template = Template(kernel=kernel, space=job.space)
    configuration = {**job.space.defaults, "BLOCK": 128}
    served = {"candidate": "c", "configuration": configuration}
    (first, *_) = found.result.dispatch
    changes = {"dispatch": (first.model_copy(update=served),), "comparisons": ()}
    ended = clock.Ended(found.result.model_copy(update=changes), found.baseline, {"c": template})
    pool = CompilePool()
    try:
        (row,) = clock.measured(ended, found.baseline.device, pool)["rows"]
    finally:
        pool.close()
    assert isinstance(row, dict)
    return row


def test_an_interval_over_kernels_holds_its_mean() -> None:
    mean, low, high = interval([0.1, 0.2, 0.3, 0.4])
    assert low < mean < high
    assert interval([0.5, 0.5]) == pytest.approx((1.6487, 1.6487, 1.6487), rel=1e-4)


def test_means_of_both_kinds_over_workloads() -> None:
    found = means([(30.0, 10.0), (10.0, 10.0), (12.0, 24.0)])
    assert found is not None
    assert (found["base_us"], found["best_us"]) == pytest.approx((52 / 3, 44 / 3))
    assert found["arithmetic"] == pytest.approx((3 + 1 + 0.5) / 3), "a mean of ratios, not a ratio of means"
    assert found["geometric"] == pytest.approx(1.5 ** (1 / 3))
    assert means([]) is None


def test_an_outlier_of_the_host_moves_the_mean_of_calls_and_not_the_median() -> None:
    blocks = {"A": [[20.0] * 99 + [2020.0], *[[20.0] * 100] * 3], "B": [[10.0] * 100] * 4}
    found = call_figures(blocks)
    assert found["ratio_of_means"] == pytest.approx(2.5)
    assert found["ratio_of_medians"] == {"estimate": 2.0, "low": 2.0, "high": 2.0}
    kept = call_figures({"A": blocks["A"]})
    assert kept["ratio_of_means"] == kept["ratio_of_medians"]["estimate"] == 1.0


def test_a_process_of_calls_that_ends_leaves_a_reason_for_every_workload() -> None:
    nowhere = DEVICE.model_copy(update={"index": 99})
    calls = [Calls(WorkloadPlan("n=1", (), 0), {})] * 2
    assert call_blocks(nowhere, calls) == ["the process of the calls ended before that"] * 2
