"""The bench of honest production kernels, on a kernel of the examples."""

from pathlib import Path

from benchmarks.production.honest import fixed, page, run, smallest
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.jobfile import load_job

EXAMPLE = Path(__file__).parents[2] / "examples" / "stencil" / "opencl.yaml"


def test_defaults_and_drawn_configurations_go_through_every_check(tmp_path: Path) -> None:
    (tmp_path / "stencil.json").write_text(load_job(EXAMPLE).model_dump_json())
    rows, left = run([tmp_path / "stencil.json"], drawn=1, processes=1, seconds=600)
    assert left == []
    assert [r["reason"] for r in rows] == ["", ""]
    assert all(r["accepted"] for r in rows)
    assert rows[0]["configuration"] != rows[1]["configuration"]


def test_a_job_that_cannot_begin_in_time_is_named(tmp_path: Path) -> None:
    (tmp_path / "stencil.json").write_text(load_job(EXAMPLE).model_dump_json())
    assert run([tmp_path / "stencil.json"], drawn=1, processes=1, seconds=-1) == ([], ["stencil"])


def test_the_smallest_workload_and_the_configuration_are_kept() -> None:
    job = load_job(EXAMPLE)
    assert len(job.workloads) > 1
    (workload,) = smallest(job).workloads
    assert workload in job.workloads
    template = make_template(job).template
    chosen = {p.name: p.values[-1] for p in template.space.parameters}
    assert dict(fixed(template, chosen).space.defaults) == chosen


def test_the_page_counts_what_was_refused() -> None:
    row = {"job": "k", "configuration": {}, "accepted": False, "layer": "check", "reason": "y is | wrong"}
    where = {"device": "d", "driver": "1", "commit": "c", "when": "now", "command": "run"}
    refused = {"hits": 1, "of": 2, "rate": 0.5, "low": 0.1, "high": 0.9}
    shown = page(
        {
            **where,
            "rounds": 1,
            "refused": refused,
            "refused_fast": {**refused, "hits": 0, "of": 0},
            "no_room": 0,
            "not_begun": ["m"],
            "rows": [row, {**row, "accepted": True}],
        }
    )
    assert "| k | 2 | 1 | check: y is / wrong |" in shown
    assert "1 of 2 (50.0 %" in shown
    assert "with fast arithmetic that are refused: none run" in shown
    assert "| m | not begun | | |" in shown
