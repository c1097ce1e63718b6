"""The picture and the table of the README are those of the record."""

import json
import re
from statistics import geometric_mean
from typing import Any

import pytest

from benchmarks.agents.gains_picture import FOLDER, RECORD, ROOT, THEMES, Gain, gain_of, gains, picture

JOBS: list[dict[str, Any]] = json.loads(RECORD.read_text())["jobs"]


@pytest.mark.parametrize("theme", THEMES)
def test_the_pictures_are_those_of_the_record(theme: str) -> None:
    drawn = picture(gains(JOBS), THEMES[theme], JOBS[0]["device"])
    assert (FOLDER / f"gains-{theme}.svg").read_text() == drawn


def test_a_gain_is_the_job_s_own_speed_up() -> None:
    for job in JOBS:
        gain = gain_of(job)
        assert gain.estimate == pytest.approx(job["speedup"], rel=1e-9), job["name"]
        assert gain.low <= gain.estimate <= gain.high


def test_a_job_without_gain_has_none() -> None:
    assert gain_of({"speedup": 1.0, "comparisons": [], "workloads": []}) == Gain(1.0, 1.0, 1.0)


def test_the_table_of_the_readme_has_the_record_s_figures() -> None:
    page = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \S+ (\w+) \| H100 \| model \| (\S+) \[(\S+), (\S+)\] \|", page, re.M)
    assert len(rows) >= 3
    known = {kernel.split("_", 1)[1]: arms["template"] for kernel, arms in gains(JOBS).items()}
    for kernel, *figures in rows:
        assert figures == [f"{known[kernel].estimate:.2f}x", *(f"{n:.2f}" for n in known[kernel][1:])], kernel


def test_the_operators_of_the_readme_have_the_record_s_figures() -> None:
    page = (ROOT / "README.md").read_text()
    record = json.loads((RECORD.parent / "operators.json").read_text())
    known = {
        row["kernel"].removeprefix("fresh_"): tuple(
            f"{geometric_mean([w[way]['speedup'][0] for w in row['workloads']]):.2f}x"
            for way in ("eager", "graph")
        )
        for row in record["kernels"]
        if "workloads" in row
    }
    rows = re.findall(r"^\| ([\w, ]+) \| (\S+x(?: to \S+x)?) \| (\S+x(?: to \S+x)?) \|$", page, re.M)
    named = [name for names, *_ in rows for name in names.split(", ")]
    assert sorted(named) == sorted(known)
    for names, *figures in rows:
        for way, figure in enumerate(figures):
            found = sorted((known[name][way] for name in names.split(", ")), key=lambda x: float(x[:-1]))
            assert figure == " to ".join(dict.fromkeys((found[0], found[-1]))), names
