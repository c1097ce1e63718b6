"""The boxes of the report, for results of today and of older versions; and a page that fits a phone."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.cli.test_report import BEST, HOSTILE, VOID, Page, entry, result, trials
from warpsmith.domain.state import JobState
from warpsmith.report.boxes import reproduce_rows
from warpsmith.report.bundle import report_html, write_bundle
from warpsmith.report.formats import short_class
from warpsmith.report.progress_curve import HEIGHT, progress_svg
from warpsmith.testing.jobs import SCALE_SOURCE

SOURCE = "#define BLOCK 256\n" + SCALE_SOURCE


class Outside(HTMLParser):
    """Collects wide elements that stand outside a container that scrolls."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.seen: list[str] = []
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("table", "svg"):
            self.seen.append(tag)
            if not any(self.open):
                self.found.append(tag)
        if tag not in VOID:
            # A key of a legend is as wide as a letter.
            self.open.append(dict(attrs).get("class") in ("scroll", "legend", "diff"))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()


def _box(text: str, title: str) -> str:
    return " ".join(Page(text).text.partition(f"\n{title}\n")[2].split())


def test_use_it_gives_file_launch_and_defines_of_each_workload() -> None:
    shown = _box(report_html(result()), "Use it")
    launch = "grid (4, 1, 1), block (256, 1, 1), shared 0 B"
    assert f"n=4096 tuned-n_4096.cl {launch} BLOCK=256 PER=4" in shown
    assert f"n=1001 your kernel as posted {launch} The files lie" in shown
    assert "dispatch.py" not in shown, "it does not say what its device can take"


def test_use_it_names_the_files_that_the_bundle_writes(tmp_path: Path) -> None:
    alike = result(dispatch=(entry("a=1", BEST, SOURCE), entry("a_1", BEST, SOURCE)))
    tuned = [p.name for p in write_bundle(alike, (), tmp_path) if p.name.startswith("tuned-")]
    assert len(set(tuned)) == 2
    shown = _box((tmp_path / "report.html").read_text(), "Use it")
    assert all(f"{key} {name} grid" in shown for key, name in zip(("a=1", "a_1"), tuned, strict=True))


def test_use_it_stands_only_where_there_is_something_to_use() -> None:
    assert "Use it" not in report_html(result(dispatch=(entry("n=4096"), entry("n=1001"))))
    failed = result(state=JobState.FAILED, speedup=None, comparisons=(), dispatch=())
    assert "Use it" not in report_html(failed)
    assert "job job1" in _box(report_html(failed), "Reproduce")


def test_reproduce_says_what_the_result_knows() -> None:
    job = result().job
    job = job.model_copy(
        update={"seed": 7, "budget": job.budget.model_copy(update={"trials": 30, "seconds": 60.0})}
    )
    found = result(job=job, finished_at=datetime(2026, 1, 2, 3, tzinfo=UTC))
    assert dict(reproduce_rows(found)) == {
        "date": "2026-01-02",
        "device": "Test GPU",
        "driver": "1.2",
        "device class": "opencl-test-gpu-1.2",
        "budget": f"30 trials, 60 s, rounds: {job.budget.rounds}",
        "seed of the search": "7",
        "job": "job1",
        "Warpsmith": "0.1.0",
    }
    shown = _box(report_html(found), "Reproduce")
    assert "date 2026-01-02 device Test GPU driver 1.2" in shown


@pytest.mark.parametrize("field", ["device", "driver", "device_class"])
def test_reproduce_leaves_out_what_the_result_does_not_know(field: str) -> None:
    names = dict(reproduce_rows(result(**{field: ""})))
    assert field.replace("_", " ") not in names
    assert "date" not in names
    assert "job" in names


def test_on_a_phone_what_is_wide_scrolls_in_its_own_container() -> None:
    text = report_html(result(), trials(1.0, 2.0))
    page = Outside(text)
    assert {"table", "svg"} <= set(page.seen)
    assert page.found == []
    assert "overflow-wrap: break-word" in text, "a long name breaks; a table's least width stays"


def test_boxes_take_hostile_text() -> None:
    dirty = result(device=HOSTILE, driver=HOSTILE, dispatch=(entry(HOSTILE, {HOSTILE: "x"}, SOURCE),))
    text = report_html(dirty)
    assert "<script" not in text, "without trials there is no chart"
    assert HOSTILE in _box(text, "Use it")


def test_the_plot_marks_the_verified_speed_up_against_the_verified_baseline() -> None:
    text = report_html(result(speedup=1.5), trials(1.0, 3.0))
    assert "verified 1.50x" in Page(text).text
    ring = re.search(r'class="verified" cx="[\d.]+" cy="([\d.]+)"', text)
    one = re.search(r'class="one" [^>]*y1="([\d.]+)"', text)
    dots = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', text)]
    assert ring and one
    assert dots[0] == float(one[1])
    assert (dots[0] - float(ring[1])) / (dots[0] - dots[1]) == pytest.approx(0.25, abs=0.01)


def test_the_plot_has_no_ring_where_nothing_was_verified() -> None:
    for shown in (result(speedup=None), result(speedup=1.0, comparisons=())):
        assert 'class="verified"' not in report_html(shown, trials(1.0, 3.0))


def test_a_verified_figure_above_all_trials_stays_in_the_frame() -> None:
    ring = re.search(r'class="verified" cx="[\d.]+" cy="([\d.]+)"', progress_svg(trials(1.0, 2.0), 9.0))
    assert ring and 0 <= float(ring[1]) <= HEIGHT


@pytest.mark.parametrize(
    ("device_class", "short"),
    [
        ("opencl-pthread-amd-epyc-portable-computing-language-3.0-rc2", "EPYC, PoCL 3.0"),
        ("opencl-pthread-intel-r-xeon-r-processor-portable-computing-language-3.0", "XEON, PoCL 3.0"),
        ("cuda-nvidia-h100-80gb-hbm3-580.95", "H100 80GB, CUDA 580.95"),
        ("cuda-nvidia-geforce-rtx-4090-580.95.05", "GEFORCE RTX, CUDA 580.95"),
        ("opencl-test-gpu-1.2", "TEST GPU, OpenCL 1.2"),
        ("recorded", "recorded"),
        (None, "–"),
    ],
)
def test_a_device_class_has_a_short_name(device_class: str | None, short: str) -> None:
    assert short_class(device_class) == short
