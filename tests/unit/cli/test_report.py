"""The report: safe with hostile text, figures as people read them, and nothing lost on the way."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from testbed.rows import measured, rejected
from warpsmith.domain.device import Backend
from warpsmith.domain.state import CandidateState, JobState, TrialState
from warpsmith.domain.templates.outcome import (
    Comparison,
    Conditions,
    Interval,
    Measured,
    NoGain,
    Rejected,
    Verdict,
)
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import AppliedRule
from warpsmith.http_models import CandidateView, DispatchEntry, JobResult, RejectionCount, TrialView
from warpsmith.report.bundle import read_result, read_trials, report_html, write_bundle
from warpsmith.report.evidence import counter_rows, evidence_rows
from warpsmith.report.job_charts import SCRIPTS
from warpsmith.report.progress_curve import HEIGHT, WIDTH, progress_svg
from warpsmith.report.tables import (
    baseline_table,
    chosen_table,
    comparison_rows,
    comparison_table,
    configuration_text,
    energy_table,
    energy_words,
    outcome_table,
)
from warpsmith.report.tuned_file import tuned_file
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job
from warpsmith.tuning.analysis.search_facts import Facts, KernelFacts

HOSTILE = "</pre></style><script>alert('x')</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&\"'"
BEST: Configuration = {"BLOCK": 256, "PER": 4}
VOID = {"meta", "br", "link", "img", "input", "hr"}


def comparison(workload: str, speedup: tuple[float, float, float], verdict: Verdict) -> Comparison:
    estimate, low, high = speedup
    return Comparison(
        workload=workload,
        configuration_key="0" * 16,
        baseline_us=123.456,
        best_us=123.456 / estimate,
        speedup=Interval(estimate=estimate, low=low, high=high),
        verdict=verdict,
        cache="cold",
        pairs=12,
        aa_width=0.0123,
    )


def entry(
    workload: str, configuration: Configuration | None = None, source: str | None = None
) -> DispatchEntry:
    return DispatchEntry(
        workload=workload,
        configuration=configuration,
        candidate="c1" if configuration else None,
        source=source,
        entry="scale",
        grid=(4, 1, 1),
        block=(256, 1, 1),
        shared_bytes=0,
        launch=scale_job().kernel.launch,
    )


def result(**changes: Any) -> JobResult:
    """A job that is done: faster on one workload, the baseline kept on the other."""
    job = scale_job()
    candidate = CandidateView(
        id="c1",
        round=1,
        state=CandidateState.SEARCHED,
        applied=(AppliedRule(rule="unroll", detail="by 4", parameters=("PER",)),),
        declined=("restrict: y may alias x",),
        space=job.space,
        feasible=16,
        source=SCALE_SOURCE,
        entry="scale",
    )
    fields: dict[str, Any] = {
        "id": "job1",
        "job": job,
        "state": JobState.DONE,
        "detail": "verified",
        "device": "Test GPU",
        "driver": "1.2",
        "device_class": "opencl-test-gpu-1.2",
        "speedup": 1.41421,
        "comparisons": (
            comparison("n=4096", (2.0, 1.951, 2.049), Verdict.FASTER),
            comparison("n=1001", (0.999, 0.98, 1.02), Verdict.EQUAL),
        ),
        "dispatch": (
            entry("n=4096", BEST, "#define BLOCK 256\n#define PER 4\n" + SCALE_SOURCE),
            entry("n=1001"),
        ),
        "trials_measured": 10,
        "trials_rejected": 2,
        "trials_per_second": 3.14159,
        "rejections": (
            RejectionCount(stage="compile", reason="no such type", count=2, example={"BLOCK": 32, "PER": 8}),
        ),
        "seconds": 12.5,
        "candidates": (candidate,),
        "warpsmith_version": "0.1.0",
    }
    return JobResult(**(fields | changes))


def trial(number: int, outcome: Measured | Rejected | None) -> TrialView:
    state = TrialState.FINISHED if outcome else TrialState.PROPOSED
    return TrialView(
        number=number, candidate="c1", round=1, configuration=BEST, state=state, outcome=outcome, seconds=0.1
    )


def trials(*speedups: float) -> list[TrialView]:
    """Measured trials with these speed-ups over the baseline."""
    return [trial(i, measured({"n=4096": 100 / s}, 1 / s)) for i, s in enumerate(speedups)]


def rendered(table: Any, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


class Page(HTMLParser):
    """Collects elements and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.text += " "
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_the_figures() -> None:
    page = Page(report_html(result(), trials(0.9, 1.5, 1.2)))
    words = " ".join(page.text.split())
    assert "1.41x" in words
    assert "Test GPU, driver 1.2 · job job1 · Warpsmith 0.1.0" in words
    assert "123.46 61.73 2.00x 1.95 to 2.05 faster BLOCK=256 PER=4" in words
    assert "equal baseline kept" in words
    assert "12 interleaved block pairs" in words
    assert "A/A half width 1.23 %" in words
    assert "3.14 trials/s" in words
    assert "rejected: compile 2 no such type BLOCK=32 PER=8" in words
    assert "unroll (by 4)" in words
    assert "restrict: y may alias x" in words
    assert "Tuned source for n=4096" in words
    assert "svg" in page.tags


def test_the_page_needs_nothing_else() -> None:
    text = report_html(result(), trials(1.0, 2.0))
    page = Page(text)
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert not [a for a in page.attributes if a[0] in ("src", "href") or a[0].startswith("on")]
    assert "url(" not in text
    assert "@import" not in text


def test_hostile_text_stays_text() -> None:
    """Everything that a job, a kernel or a compiler can write into a report."""
    base = result()
    dirty = result(
        id=HOSTILE,
        job=base.job.model_copy(update={"name": HOSTILE}),
        device=HOSTILE,
        driver=HOSTILE,
        detail=HOSTILE,
        comparisons=(comparison(HOSTILE, (2.0, 1.9, 2.1), Verdict.FASTER),),
        dispatch=(entry(HOSTILE, {HOSTILE: "x"}, f"// {HOSTILE}\n{HOSTILE}\n" + SCALE_SOURCE),),
        rejections=(RejectionCount(stage=HOSTILE, reason=HOSTILE, count=1, example={HOSTILE: 1}),),
        candidates=(
            base.candidates[0].model_copy(
                update={
                    "applied": (AppliedRule(rule=HOSTILE, detail=HOSTILE),),
                    "declined": (HOSTILE,),
                    "source": HOSTILE,
                }
            ),
        ),
        warpsmith_version=HOSTILE,
    )
    for shown in (dirty, dirty.model_copy(update={"speedup": None})):
        text = report_html(shown, trials(1.0, 2.0))
        page = Page(text)
        assert "img" not in page.tags
        assert not [a for a in page.attributes if a[0].startswith("on")]
        assert page.tags.count("script") == len(SCRIPTS) + 1
        assert "<script>alert" not in text
        assert "{{ 7 * 7 }}" in page.text
        assert page.text.count(HOSTILE) >= 10


def test_a_verdict_cannot_break_out_of_its_class() -> None:
    page = Page(report_html(result()))
    classes = {value for name, value in page.attributes if name == "class"}
    assert {"faster", "equal"} <= classes


def test_candidates_bear_the_names_of_their_ideas() -> None:
    (candidate,) = result().candidates
    assert "round 1, searched" in report_html(result())
    named = candidate.model_copy(update={"idea": "wide loads"})
    assert "round 1, wide loads, searched" in report_html(result(candidates=(named,)))


def test_a_job_without_figures_says_why() -> None:
    failed = result(
        state=JobState.FAILED, detail="the kernel does not compile", speedup=None, comparisons=(), dispatch=()
    )
    page = Page(report_html(failed))
    assert "failed" in page.text
    assert "the kernel does not compile" in page.text
    assert "svg" not in page.tags
    assert "Tuned source" not in page.text


def test_one_source_for_several_workloads_is_shown_once() -> None:
    source = "#define BLOCK 256\n" + SCALE_SOURCE
    shared = result(dispatch=(entry("n=4096", BEST, source), entry("n=1001", BEST, source)))
    page = Page(report_html(shared))
    assert page.text.count("Tuned source for") == 1
    assert "Tuned source for n=4096; n=1001" in page.text


def test_the_difference_is_to_the_users_own_source() -> None:
    page = Page(report_html(result()))
    difference = page.text.partition("difference to the original")[2]
    assert "1 + #define BLOCK 256" in difference
    assert " − " not in difference


# The bundle.


def test_the_bundle_is_complete_and_reads_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    written = write_bundle(result(), trials(1.0, 2.0), folder)
    names = ["report.html", "result.json", "trials.jsonl", "tuned-n_4096.cl"]
    assert sorted(p.name for p in written) == names
    assert sorted(folder.iterdir()) == sorted(written)
    assert JobResult.model_validate_json((folder / "result.json").read_bytes()) == result()
    assert (folder / "tuned-n_4096.cl").read_text() == tuned_file(result(), result().dispatch[0])
    assert read_result(folder) == result()
    assert read_trials(folder) == trials(1.0, 2.0)
    assert write_bundle(result(), (), folder) == written
    assert read_trials(folder) == []


def test_names_of_files_stay_in_the_folder(tmp_path: Path) -> None:
    workloads = ("../../etc/passwd", "a=1,b=2", "x" * 500)
    dirty = result(dispatch=tuple(entry(w, BEST, f"// {i}\n") for i, w in enumerate(workloads)))
    written = write_bundle(dirty, (), tmp_path / "out")
    assert {p.parent for p in written} == {tmp_path / "out"}
    assert [p.name for p in written[2:4]] == ["tuned-______etc_passwd.cl", "tuned-a_1_b_2.cl"]
    assert len(written[4].name) < 100
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_no_source_overwrites_another(tmp_path: Path) -> None:
    long = "x" * 100
    workloads = ("a=1", "a_1", long + "=1", long + "=2")
    many = result(dispatch=tuple(entry(w, BEST, f"// {w}\n") for w in workloads))
    written = write_bundle(many, (), tmp_path)
    assert len(set(written)) == 7
    assert [p.read_text().splitlines()[-1] for p in written[2:6]] == [f"// {w}" for w in workloads]


def test_text_of_the_bundle_is_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "// grüße 中文\n" + SCALE_SOURCE
    written = write_bundle(result(dispatch=(entry("n=4096", BEST, source),)), (), tmp_path)
    assert written[2].read_bytes().decode().endswith("\n\n" + source)
    assert "grüße 中文" in written[1].read_bytes().decode()


# Tables.


def test_trials_cut_short_are_counted_apart_where_there_are_any() -> None:
    assert "cut short" not in rendered(outcome_table(result()))
    lines = rendered(outcome_table(result(trials_cut_short=7)), 120).splitlines()
    (line,) = [text for text in lines if "cut short" in text]
    assert "7" in line.split()


def test_tables_fit_a_terminal_whole() -> None:
    for table in (comparison_table(result()), chosen_table(result()), outcome_table(result())):
        text = rendered(table)
        assert all(len(line) <= 80 for line in text.splitlines())
        assert "…" not in text


def test_the_comparison_table_is_in_round_figures() -> None:
    text = rendered(comparison_table(result()))
    assert "scale: 1.41x over all workloads" in text
    line = next(line for line in text.splitlines() if "n=4096" in line)
    assert line.split() == ["n=4096", "123.46", "61.73", "2.00x", "(1.95", "to", "2.05)", "faster"]
    assert "no verified figure" in rendered(comparison_table(result(speedup=None, comparisons=())))


def test_rows_name_the_configuration_of_the_dispatch() -> None:
    rows = list(comparison_rows(result()))
    assert rows[0] == ("n=4096", "123.46", "61.73", "2.00x", "1.95 to 2.05", "faster", "BLOCK=256 PER=4")
    assert rows[1][5:] == ("equal", "baseline kept")


def test_a_workload_without_gain_is_shown_with_the_figures_of_the_search() -> None:
    idle = NoGain(workload="n=7", baseline_us=50.0, best_us=50.2)
    first, _ = result().comparisons
    shown = result(comparisons=(first,), no_gain=(idle,))
    assert list(comparison_rows(shown))[1] == (
        *("n=7", "50.00", "50.20", "1.00x", "in the search", "no gain", "baseline kept"),
    )
    assert "no trial of this workload was faster" in Page(report_html(shown)).text
    alone = result(comparisons=(), no_gain=(idle,), speedup=1.0)
    assert "n=7 50.00 50.20 1.00x" in " ".join(rendered(comparison_table(alone), width=120).split())
    assert "50.20" in Page(report_html(alone)).text
    assert baseline_table(alone) is None


def test_energy_is_shown_where_it_was_measured() -> None:
    assert energy_table(result()) is None
    assert "Energy" not in Page(report_html(result())).text
    known = {"baseline_mj": 12.34, "best_mj": 6.17, "energy_spread": 0.0123}
    first, second = result().comparisons
    front = ("baseline", first.configuration_key, "f" * 16)
    measured = result(comparisons=(first.model_copy(update={**known, "pareto": front}), second))
    table = energy_table(measured)
    assert table is not None
    text = rendered(table, width=120)
    assert re.search(rf"n=4096 +12\.3 +6\.17 +50\.0 % +1\.2 % +baseline, best, {'f' * 16}", text)
    assert "n=1001" not in text
    page = Page(report_html(measured)).text
    assert "12.3" in page.partition("Energy of one launch")[0].partition("Energy")[2]


def test_a_result_says_why_it_has_no_energy() -> None:
    assert energy_words(result()) == "", "no OpenCL device reports it"
    asked = result().job.model_copy(
        update={"kernel": result().job.kernel.model_copy(update={"backend": Backend.CUDA})}
    )
    assert "did not ask for it (objective.energy)" in energy_words(result(job=asked))
    assert "did not ask" in Page(report_html(result(job=asked))).text
    objective = asked.objective.model_copy(update={"energy": True})
    silent = result(job=asked.model_copy(update={"objective": objective}))
    assert "the device does not report it" in energy_words(silent)
    measured = [c.model_copy(update={"baseline_mj": 2.0, "best_mj": 1.0}) for c in silent.comparisons]
    assert energy_words(silent.model_copy(update={"comparisons": tuple(measured)})) == ""


def test_outcomes_are_counted_with_their_reasons() -> None:
    text = rendered(outcome_table(result()))
    assert re.search(r"measured +10 +3\.14 trials/s", text)
    assert re.search(r"rejected: compile +2 +no such type", text)


def test_markup_in_a_reason_is_text() -> None:
    reason = "[bold]x[/bold] [/red] [link=file:///etc/passwd]y[/link]"
    counted = RejectionCount(stage="compile", reason=reason, count=1, example={})
    text = rendered(outcome_table(result(rejections=(counted,))), width=120)
    assert reason in text


def test_a_workload_wider_than_the_terminal_is_folded() -> None:
    key = ",".join(f"dimension{i}={10**9 + i}" for i in range(16))
    folded = result(comparisons=(comparison(key, (2.0, 1.9, 2.1), Verdict.FASTER),), dispatch=(entry(key),))
    for table in (comparison_table(folded), chosen_table(folded)):
        text = rendered(table)
        assert all(len(line) <= 80 for line in text.splitlines())
        assert "…" not in text


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        (None, "baseline kept"),
        ({"BLOCK": 128, "VEC": "float4", "FAST": True, "F": 0.5}, "BLOCK=128 VEC=float4 FAST=True F=0.5"),
    ],
)
def test_configurations_as_text(configuration: Configuration | None, text: str) -> None:
    assert configuration_text(configuration) == text


# The curve.


def test_the_curve_has_a_dot_for_each_measured_trial_and_rises() -> None:
    shown = [*trials(0.5, 1.5, 1.0, 3.0), trial(4, rejected("wrong")), trial(5, None)]
    svg = progress_svg(shown)
    page = Page(svg)
    assert page.tags.count("circle") == 4
    path = next(v for n, v in page.attributes if n == "d" and v)
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert len(heights) == 3
    assert heights == sorted(heights, reverse=True)
    points = [(float(v or 0), n) for n, v in page.attributes if n in ("cx", "cy", "x1", "x2", "y1", "y2")]
    assert all(0 <= value <= max(WIDTH, HEIGHT) for value, _ in points)


def test_the_curve_needs_two_points() -> None:
    assert progress_svg([]) == ""
    assert progress_svg(trials(2.0)) == ""
    assert progress_svg([trial(0, rejected("wrong")), trial(1, rejected("wrong"))]) == ""
    assert progress_svg(trials(2.0, 2.0)).startswith("<svg ")


@pytest.mark.parametrize("speedups", [(1e-9, 1e9), (1e-9, 1e-9), (1.0,) * 2000])
def test_the_curve_stays_in_its_frame(speedups: tuple[float, ...]) -> None:
    numbers = re.findall(r"-?\d+\.\d+|nan|inf", progress_svg(trials(*speedups)))
    assert numbers
    assert all(0 <= float(n) <= WIDTH for n in numbers)


def test_the_device_the_sanitizers_and_the_counters_stand_behind_the_figures() -> None:
    blocks = tuple(
        Conditions(
            side=side,
            core_mhz=mhz,
            memory_mhz=3201,
            temperature_c=40,
            power_w=141.9,
            power_limit_w=700.0,
            throttled=("power cap",) if mhz == 1200 else (),
        )
        for side, mhz in (("A", 1980), ("B", 1200))
    )
    made = comparison("n=1000", (2.0, 1.9, 2.1), Verdict.FASTER).model_copy(
        update={"blocks": blocks, "sanitizers": {"memcheck": "", "racecheck": HOSTILE}}
    )
    kernel = KernelFacts(configuration=BEST, objective=0.5, counters={"dram_bytes": 267264.0})
    missing = kernel.model_copy(update={"counters": {}, "counters_missing": "ncu may not count here"})
    shown = result(comparisons=(made,), facts=Facts(baseline=missing, best=kernel, trials=1, measured=1))
    assert list(evidence_rows(shown)) == [
        (
            "n=1000",
            "1200 to 1980",
            "40",
            "142 of 700",
            "1 of 2",
            f"memcheck: nothing found; racecheck: {HOSTILE}",
        )
    ]
    assert list(counter_rows(shown)) == [("dram_bytes", "", "267,264")]
    page = report_html(shown)
    assert "1200 to 1980" in page
    assert "ncu may not count here" in page
    assert "<script>alert" not in page
    assert "While it was measured" not in report_html(result())
