"""A result in a program: figures, the kernel of a shape, trials, what notebooks show, files."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.rows import cut_short, measured, rejected
from tests.unit.cli.test_report import HOSTILE, Page, entry, result, trial, trials
from tests.unit.cli.test_shape_lookup import LARGE, SMALL, tuned
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import NoGain, Stage, Verdict
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.extensions.clients.python.result import Result
from warpsmith.extensions.clients.python.workload_results import html_table
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job

SHAPES = (1, 33, 1000, 1001, 1024, 1500, 2048, 4096, 8192, 10000, 16384, 30000, 65536, 100000)


def test_the_figures_are_those_of_the_verification() -> None:
    found = Result(result())
    assert (found.id, found.state, found.speedup, found.has_gain) == ("job1", JobState.DONE, 1.41421, True)
    assert found.job == scale_job()
    fast, kept = found.workloads
    assert (fast.workload, fast.dimensions, fast.verdict) == ("n=4096", {"n": 4096}, Verdict.FASTER)
    assert fast.speedup is not None
    assert (fast.speedup.low, fast.speedup.high) == (1.951, 2.049)
    assert fast.configuration == {"BLOCK": 256, "PER": 4}
    assert (kept.workload, kept.verdict, kept.configuration) == ("n=1001", Verdict.EQUAL, None)
    assert found.comparisons == result().comparisons


def test_a_workload_without_a_comparison_has_the_figures_of_the_search_and_no_verdict() -> None:
    in_vain = NoGain(workload="n=1001", baseline_us=10.0, best_us=10.5)
    found = Result(result(comparisons=result().comparisons[:1], no_gain=(in_vain,))).workloads[1]
    assert (found.baseline_us, found.best_us, found.speedup, found.verdict) == (10.0, 10.5, None, None)
    untimed = Result(result(comparisons=(), dispatch=(), speedup=None)).workloads
    assert [(w.baseline_us, w.best_us, w.verdict) for w in untimed] == [(None, None, None)] * 2


# The kernel of a shape.


def test_the_kernel_of_a_shape_is_the_one_that_the_dispatch_module_picks(tmp_path: Path) -> None:
    found = Result(tuned())
    (module,) = (p for p in found.save(tmp_path) if p.name == "dispatch.py")
    pick = runpy.run_path(str(module))["pick"]
    for n in SHAPES:
        kernel, launch = found.kernel_for(n=n), pick(n=n)
        assert kernel.is_tuned == (launch.file is not None), n
        assert kernel.entry == launch.entry
        assert (kernel.grid[: len(launch.grid)], kernel.block[: len(launch.block)]) == (
            launch.grid,
            launch.block,
        ), n
        assert (kernel.shared_bytes, kernel.scratch_bytes) == (launch.shared_bytes, launch.scratch_bytes)
        if launch.file is not None:
            assert (tmp_path / launch.file).read_text().endswith(kernel.source)
    assert {found.kernel_for(n=n).is_tuned for n in SHAPES} == {True, False}


def test_a_tuned_kernel_has_its_macros_and_its_launch() -> None:
    kernel = Result(tuned()).kernel_for(n=4096)
    assert kernel.is_tuned
    assert kernel.source == f"// {LARGE}"
    assert (kernel.configuration, kernel.defines) == (LARGE, {"BLOCK": "256", "PER": "4"})
    assert (kernel.grid, kernel.block) == ((4, 1, 1), (256, 1, 1))
    assert kernel.launches[0].arguments == ("x", "y", "n")
    assert Result(tuned()).kernel_for(n=1024).configuration == SMALL


def test_where_nothing_is_better_the_user_s_own_kernel_serves_ready_to_compile() -> None:
    kernel = Result(tuned()).kernel_for(n=65536)
    assert not kernel.is_tuned
    assert kernel.source.endswith(SCALE_SOURCE)
    assert kernel.defines == {"BLOCK": "64", "PER": "1"}
    assert all(f"#define {name} {text}\n" in kernel.source for name, text in kernel.defines.items())
    assert (kernel.entry, kernel.grid, kernel.block) == ("scale", (1024, 1, 1), (64, 1, 1))


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        ({"n": 64, "m": 3}, "m: no such dimension; the dimensions are n"),
        ({"nn": 64}, "nn: no such dimension; did you mean 'n'? the dimensions are n"),
        ({}, "n: no value given; the dimensions are n"),
        ({"n": 0}, "n: is 0; give a whole number above 0"),
        ({"n": 2.5}, "n: is 2.5; give a whole number"),
    ],
)
def test_a_wrong_shape_is_named(dimensions: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Result(tuned()).kernel_for(**dimensions)
    assert str(caught.value) == message


def test_a_job_without_a_device_has_no_launch() -> None:
    failed = result(state=JobState.FAILED, detail="no worker", dispatch=(), comparisons=(), speedup=None)
    with pytest.raises(InvalidInput, match="job job1 ended before its device was known: no worker"):
        Result(failed).kernel_for(n=4)


def test_a_job_that_failed_on_a_device_keeps_the_user_s_kernel() -> None:
    kernel = Result(tuned(state=JobState.FAILED, dispatch=(), comparisons=())).kernel_for(n=128)
    assert (kernel.is_tuned, kernel.grid) == (False, (2, 1, 1))


# Trials.


def test_trials_are_records_with_the_same_columns() -> None:
    times = {"n=4096": 50.0, "n=1001": 12.0}
    made = [
        trial(0, measured(times, 0.5)),
        trial(1, rejected("wrong", Stage.CORRECTNESS)),
        trial(2, None),
        trial(3, measured({"n=4096": 50.0}, 0.8)).model_copy(
            update={"outcome": cut_short({"n=4096": 70.0}, 1.3, "n=1001"), "configuration": {"UNROLL": 2}}
        ),
    ]
    records = Result(result(), made).trials
    assert len({tuple(r) for r in records}) == 1
    whole, refused, open_, short = records
    assert whole == {
        "number": 0,
        "round": 1,
        "candidate": "c1",
        "state": "finished",
        "outcome": "measured",
        "speedup": 2.0,
        "time_us.n=4096": 50.0,
        "time_us.n=1001": 12.0,
        "stage": None,
        "reason": None,
        "seconds": 0.1,
        "reused": False,
        "parameter.BLOCK": 256,
        "parameter.PER": 4,
        "parameter.UNROLL": None,
    }
    assert (refused["outcome"], refused["stage"], refused["reason"]) == ("rejected", "correctness", "wrong")
    assert (open_["state"], open_["outcome"], open_["speedup"]) == ("proposed", None, None)
    assert (short["outcome"], short["speedup"], short["time_us.n=4096"]) == ("cut_short", None, 70.0)
    assert (short["time_us.n=1001"], short["parameter.UNROLL"], short["parameter.BLOCK"]) == (None, 2, None)


def test_times_are_corrected_for_the_drift_of_the_device() -> None:
    drifted = measured({"n=4096": 50.0}, 0.5).model_copy(update={"drifts": {"n=4096": 1.25}})
    (record,) = Result(result(), [trial(0, drifted)]).trials
    assert record["time_us.n=4096"] == 40.0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_the_records(library: Any) -> None:
    pytest.importorskip(library)
    found = Result(result(), [*trials(1.0, 2.0), trial(2, rejected("wrong"))])
    made = found.frame(library)
    assert type(made).__module__.split(".")[0] == library
    assert list(made.columns) == list(found.trials[0])
    assert list(made["number"]) == [0, 1, 2]
    assert list(made["speedup"])[:2] == [1.0, 2.0]
    assert list(made["parameter.BLOCK"]) == [256, 256, 256]


def test_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    found = Result(result())
    with pytest.raises(Unavailable, match=r"neither pandas nor polars is installed; `pip install pandas`"):
        found.frame()
    with pytest.raises(Unavailable, match=r"polars is not installed; `pip install polars`"):
        found.frame("polars")
    with pytest.raises(InvalidInput, match="library: 'arrow' is neither pandas nor polars"):
        found.frame("arrow")  # type: ignore[arg-type]


# What people see.


def test_the_table_of_a_notebook_has_the_figures() -> None:
    page = Page(Result(result())._repr_html_())
    words = " ".join(page.text.split())
    assert "scale: done, 1.41x over 2 workloads" in words
    assert "n=4096 123.46 61.73 2.00x (1.95 to 2.05) faster BLOCK=256 PER=4" in words
    assert "n=1001 123.46 123.58 1.00x (0.98 to 1.02) equal baseline kept" in words
    assert "color" not in Result(result())._repr_html_()


def test_no_text_of_a_cell_is_read_as_html() -> None:
    (row, _) = Result(result()).workloads
    page = Page(html_table(HOSTILE, [replace(row, workload=HOSTILE)], [HOSTILE]))
    assert {"script", "img"} & set(page.tags) == set()
    assert page.text.count(HOSTILE) == 3


def test_no_text_of_a_job_is_read_as_html() -> None:
    page = Page(Result(result(detail=HOSTILE))._repr_html_())
    assert {"script", "img"} & set(page.tags) == set()
    assert HOSTILE in page.text


def test_a_result_says_what_it_is() -> None:
    assert repr(Result(result())) == "<Result scale: done, 1.41x over 2 workloads, job job1>"
    lines = str(Result(result())).splitlines()
    assert lines[0] == "scale: 1.41x over all workloads"
    assert "2.00x (1.95 to 2.05)" in str(Result(result()))
    assert lines[-1] == "verified"
    kept = result(dispatch=(entry("n=4096"), entry("n=1001")), speedup=1.0)
    assert repr(Result(kept)) == "<Result scale: done, no gain over 2 workloads, job job1>"
    failed = result(state=JobState.FAILED, speedup=None, dispatch=(), comparisons=())
    assert repr(Result(failed)) == "<Result scale: failed, nothing verified, job job1>"


# Files.


def test_a_saved_result_is_loaded_whole(tmp_path: Path) -> None:
    found = Result(tuned(), trials(1.0, 2.0))
    assert found.save(tmp_path / "out")
    again = Result.load(tmp_path / "out")
    assert (again.evidence, again.trials) == (found.evidence, found.trials)
    assert again.report() == found.report()


def test_texts_with_other_ends_of_lines_are_loaded_as_they_were(tmp_path: Path) -> None:
    found = Result(result(), [trial(0, rejected("one\u2028two\x85three\nfour"))])
    found.save(tmp_path)
    assert Result.load(tmp_path).trials == found.trials


def test_a_folder_of_an_older_version_has_no_trials(tmp_path: Path) -> None:
    Result(result(), trials(1.0)).save(tmp_path)
    (tmp_path / "trials.jsonl").unlink()
    assert Result.load(tmp_path).trials == []


def test_a_folder_without_a_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"result\.json is no result of this version"):
        Result.load(tmp_path)
    Result(result()).save(tmp_path)
    (tmp_path / "trials.jsonl").write_text("{}\n")
    with pytest.raises(InvalidInput, match=r"trials\.jsonl holds no trials of this version"):
        Result.load(str(tmp_path))


def test_the_report_is_a_text_or_a_file(tmp_path: Path) -> None:
    found = Result(result(), trials(1.0, 2.0))
    assert "best speed-up so far" in found.report()
    path = found.report(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == found.report()
