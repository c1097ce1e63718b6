"""The report of a job without gain: the reason is the headline, and nothing looks like a success."""

from typing import Any

from tests.unit.cli.test_report import entry, rendered, result
from warpsmith.domain.reason import Reason, ReasonCode
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import TimeSummary, WorkloadTiming
from warpsmith.http_models import JobResult
from warpsmith.report.bundle import report_html
from warpsmith.report.tables import baseline_table, comparison_table, reason_lines


def kept(**changes: Any) -> JobResult:
    """A job whose kernel stays as it is."""
    reason = Reason(
        code=ReasonCode.TEMPLATE_FAILED, sentence="the fault is ours: x[i] failed", search="1 of 1 tried"
    )
    return result(**({"speedup": 1.0, "dispatch": (entry("n=4096"),), "reason": reason} | changes))


def test_where_nothing_is_gained_the_reason_is_the_headline_and_nothing_is_green() -> None:
    page = report_html(kept())
    assert '<div class="big none">no gain</div>' in page
    assert "1.00x</div>" not in page
    assert page.index("no gain") < page.index("the fault is ours: x[i] failed") < page.index("1 of 1 tried")
    assert "no gain" in rendered(comparison_table(kept()))
    assert reason_lines(kept()) == ["the fault is ours: x[i] failed", "1 of 1 tried"]
    gained = report_html(result())
    assert '<div class="big">1.41x</div>' in gained
    assert "no gain" not in gained


def test_a_result_of_an_older_version_shows_its_detail() -> None:
    page = report_html(kept(reason=None, detail="1.00x; 0 of 1 workloads faster"))
    assert '<div class="big none">no gain</div>' in page
    assert "0 of 1 workloads faster" in page


def test_a_job_that_failed_shows_the_baseline_that_was_measured() -> None:
    time = TimeSummary(median_us=12.345, low_us=12.0, high_us=13.0, samples=9, launches_per_sample=1)
    timing = WorkloadTiming(workload="n=4096", cold=time)
    spent = Reason(code=ReasonCode.BUDGET_SPENT, sentence="spent before any configuration was tried")
    failed = kept(
        state=JobState.FAILED, speedup=None, comparisons=(), dispatch=(), baseline=(timing,), aa_width=0.02,
        reason=spent, detail="no configuration was tried",
    )  # fmt: skip
    page = report_html(failed)
    assert "The kernel as it is" in page
    assert "12.35" in page or "12.34" in page
    assert "spent before any configuration was tried" in page
    assert "differ by up to 2.00 %" in page
    table = baseline_table(failed)
    assert table is not None
    assert "n=4096" in rendered(table)
    assert baseline_table(kept(baseline=(timing,))) is None
