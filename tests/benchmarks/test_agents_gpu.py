"""Questions to a model as files, and the record of the arms, with a real service on this machine's device."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.agents import gpu
from benchmarks.agents.arms_page import interval
from tests.agents.replies import as_text, template
from warpsmith.testing.jobs import scale_job


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
    assert "not JSON" in (state / "refused" / asked["direct"]).read_text()
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


def test_an_interval_over_kernels_holds_its_mean() -> None:
    mean, low, high = interval([0.1, 0.2, 0.3, 0.4])
    assert low < mean < high
    assert interval([0.5, 0.5]) == pytest.approx((1.6487, 1.6487, 1.6487), rel=1e-4)
