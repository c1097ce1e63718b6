"""The charts of a report: what it carries for them, that nothing in it gets out, and what stands without."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from testbed.rows import cut_short, measured, rejected
from tests.unit.cli.test_report import HOSTILE, Page, result, trials
from warpsmith.chart_models import JobSeconds, JobStage, StageSeconds
from warpsmith.domain.state import TrialState
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration
from warpsmith.http_models import TrialView
from warpsmith.report.bundle import report_html
from warpsmith.report.formats import FILTERS
from warpsmith.report.job_charts import SCRIPTS, content_policy, part, recorded_trials
from warpsmith.report.parts import FOLDER
from warpsmith.report.progress_curve import MANY, progress_svg
from warpsmith.system.printable import one_line
from warpsmith.tuning.analysis.parameter_importance import Effect, Interaction
from warpsmith.tuning.analysis.search_facts import Facts, KernelFacts, WorkloadFacts

ESCAPES = ("</script>", "<script>", "<!--", "]]>", "&lt;", "\u2028\u2029", '"\\', "\x00\x1b[31m")


def tried(
    number: int, outcome: Outcome | None, configuration: Configuration | None = None, at_s: float | None = 1.5
) -> TrialView:
    return TrialView(
        number=number,
        candidate=f"c{number // 2}",
        round=1 + number // 2,
        configuration={"BLOCK": 64} if configuration is None else configuration,
        state=TrialState.FINISHED if outcome else TrialState.PROPOSED,
        outcome=outcome,
        at_s=at_s,
    )


class Scripts(HTMLParser):
    """The scripts of a page as a browser sees them: type and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str | None, str]] = []
        self._type: str | None = None
        self._text: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self._type, self._text = dict(attrs).get("type"), ""

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._text is not None:
            self.found.append((self._type, self._text))
            self._text = None


def kept_in(page: str) -> dict[str, Any]:
    """The JSON that a report carries."""
    ((_, text),) = [s for s in Scripts(page).found if s[0] == "application/json"]
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_report_carries_every_finished_trial() -> None:
    shown = [
        tried(0, measured({"n=1": 1.0}, 0.5), {"BLOCK": 64, "VEC": 2}),
        tried(1, rejected("wrong")),
        tried(2, cut_short({"n=1": 1.0}, 2.0, "n=2"), {"BLOCK": 128}),
        tried(3, None),
        tried(4, rejected("wrong"), {}),
    ]
    kept = kept_in(report_html(result(), shown))
    points = kept["points"]
    assert points["number"] == [0, 1, 2, 4]
    assert points["gain"] == [2.0, None, None, None]
    assert points["outcome"] == ["measured", "rejected", "cut_short", "rejected"]
    assert points["rejection"] == [None, 0, None, 0]
    assert points["rejections"] == [{"stage": "correctness", "reason": "wrong"}]
    assert points["candidate"] == [0, 0, 1, 2]
    assert kept["parameters"] == [
        {"name": "BLOCK", "values": ["64", "128"], "index": [0, 0, 1, None]},
        {"name": "VEC", "values": ["2"], "index": [0, None, None, None]},
    ]
    assert kept["timed"] is True


def test_older_results_do_not_say_when_trials_ended() -> None:
    one = measured({"n=1": 1.0}, 0.5)
    assert recorded_trials([tried(0, one), tried(1, one, at_s=None)]).timed is False
    assert recorded_trials([tried(0, one), tried(1, None, at_s=None)]).timed is True
    assert recorded_trials([]).timed is False


@pytest.mark.parametrize("text", [HOSTILE, *ESCAPES])
def test_text_cannot_leave_the_json(text: str) -> None:
    shown = [tried(0, rejected(text), {text: 1}), tried(1, measured({"n=1": 1.0}, 0.5))]
    page = report_html(result(), shown)
    scripts = Scripts(page).found
    assert [kind for kind, _ in scripts] == ["application/json", *[None] * len(SCRIPTS)]
    assert [body for kind, body in scripts if kind is None] == [part(name) for name in SCRIPTS]
    assert not re.search("[<>&\u2028\u2029]", scripts[0][1])
    kept = kept_in(page)
    assert kept["parameters"][0] == {"name": text, "values": ["1"], "index": [0, None]}
    assert kept["points"]["rejections"][0]["reason"] == one_line(text)
    assert Page(page).tags.count("script") == 1 + len(SCRIPTS)


def test_the_policy_lets_only_the_scripts_of_the_report_run() -> None:
    page = report_html(result(), trials(1.0, 2.0))
    digests = {
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for kind, text in Scripts(page).found
        if kind is None
    }
    allowed = next(d for d in content_policy().split("; ") if d.startswith("script-src ")).split(" ")[1:]
    assert set(allowed) == digests
    assert "default-src 'none'" in content_policy()
    shown = dict(Page(page).attributes)["content"]
    assert shown is not None
    head = page.partition("<style>")[0]
    assert content_policy().replace("'", "&#39;") in head, "it comes before everything that it is to hold"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_stand_in_a_page(name: str) -> None:
    text = part(name)
    assert not re.search(r"</script|<!--|<script", text, re.IGNORECASE)
    if "vendor" not in name:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", text)


def test_without_scripts_the_curve_stands() -> None:
    page = report_html(result(), trials(1.0, 2.0))
    static = page.partition('<div class="chart-static">')[2]
    assert static.lstrip().startswith('<div class="scroll" tabindex="0"><svg ')
    assert "Search" not in Page(report_html(result())).text


def test_dots_that_hide_each_other_are_left_out_of_a_large_curve() -> None:
    few = trials(*[1.0 + n % 7 for n in range(MANY)])
    assert progress_svg(few).count("<circle") == MANY
    lots = trials(*[1.0 + n % 7 for n in range(5 * MANY)])
    assert progress_svg(lots).count("<circle") < 5 * MANY


# Macros that the pages use as well.


def macro(name: str, value: object) -> str:
    """What a macro makes of a value, under the strict rules of the pages."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= FILTERS
    source = '{% import "charts.html.jinja" as charts %}{{ charts[name](value) }}'
    return made.from_string(source).render(name=name, value=value)


def words(text: str) -> str:
    return " ".join(Page(text).text.split())


def widths(text: str, tone: str) -> list[float]:
    return [float(w) for w in re.findall(rf'<rect class="{tone}"[^>]* width="([\d.]+)" height="4"', text)]


def stage(name: JobStage, round_: int | None, seconds: float) -> StageSeconds:
    return StageSeconds(stage=name, round=round_, seconds=seconds)


def test_the_bar_of_stages_is_all_of_the_time() -> None:
    stages = (stage("queue", None, 1.0), stage("search", 1, 60.0), stage("search", 2, 19.0))
    shown = macro("stages", JobSeconds(seconds=80.0, stages=stages))
    (bar,) = re.findall(r'<svg class="stacked".*?</svg>', shown, re.DOTALL)
    assert widths(bar, "s1") == [pytest.approx(98.75)]
    assert sum(float(w) for w in re.findall(r' width="([\d.]+)"', bar)) == pytest.approx(100)
    assert 'aria-label="80 s in all: queue 1.0 s, search 79 s"' in bar
    assert "search 2 19 s 24 %" in words(shown)
    assert "style=" not in shown


def test_a_job_that_has_just_begun_has_a_bar_without_stages() -> None:
    assert "0.0 s in all" in macro("stages", JobSeconds(seconds=0.0, stages=()))
    assert "0.0 s" in macro("stages", JobSeconds(seconds=0.0, stages=(stage("queue", None, 0.0),)))


def kernel(time_us: float, floor_us: float | None) -> KernelFacts:
    known = {"floor_us": floor_us, "floor_bound": "bytes", "roofline_share": None}
    if floor_us is not None:
        known["roofline_share"] = floor_us / time_us
    row = WorkloadFacts.model_validate(
        {"workload": "n=<1>", "time_us": time_us, "bytes": 1, "bytes_per_s": 1.0, **known}
    )
    return KernelFacts(workloads=(row,))


def test_the_roofline_has_bars_of_time() -> None:
    shown = macro("roofline", Facts(baseline=kernel(100.0, 25.0), best=kernel(50.0, 25.0)))
    assert (widths(shown, "s5"), widths(shown, "s1"), widths(shown, "s3")) == ([100.0], [50.0], [25.0])
    assert "baseline 100.0 µs 25 % best in the search 50.00 µs 50 % bound by memory 25.00 µs" in words(shown)
    assert "n=<1>" in words(shown)


def test_the_roofline_before_the_search_and_without_a_bound() -> None:
    assert "best in the search" not in macro("roofline", Facts(baseline=kernel(100.0, 25.0)))
    unknown = Facts(baseline=kernel(100.0, None), best=kernel(50.0, None))
    assert "bound by" not in words(macro("roofline", unknown))


def test_importance_names_the_parameter_that_matters_most() -> None:
    effects = tuple(Effect(parameter=p, importance=i, best={"1": 0.9}) for p, i in (("<B>", 0.5), ("V", 0.1)))
    pairs = (Interaction(parameters=("<B>", "V"), importance=0.07),)
    base = KernelFacts()
    shown = macro("importance", Facts(baseline=base, measured=40, effects=effects, interactions=pairs))
    assert "<B> matters most: it explains 50 % of the differences in time among 40 measured trials." in words(
        shown
    )
    assert widths(shown, "s1") == [50.0, 10.0]
    assert "<B> and V together: 7 % more" in words(shown)
    assert "Too few trials" in macro("importance", Facts(baseline=base))
