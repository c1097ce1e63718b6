"""The file of a tuned source says what it is, and a hostile name stays within its comment."""

from datetime import UTC, datetime
from pathlib import Path

from tests.unit.cli.test_report import BEST, entry, result
from warpsmith.report.bundle import report_html, write_bundle
from warpsmith.report.tuned_file import tuned_file
from warpsmith.testing.jobs import SCALE_SOURCE

SOURCE = "#define BLOCK 256\n" + SCALE_SOURCE


def test_its_top_says_where_it_was_measured_and_how_it_is_launched(tmp_path: Path) -> None:
    found = result(finished_at=datetime(2026, 1, 2, 3, tzinfo=UTC))
    write_bundle(found, [], tmp_path)
    text = (tmp_path / "tuned-n_4096.cl").read_text()
    head, _, source = text.partition("\n\n")
    assert head.splitlines() == [
        "// scale, tuned by Warpsmith 0.1.0: job job1, 2026-01-02.",
        "// Device: Test GPU, driver 1.2.",
        "// Workload: n=4096, 2.00x [1.95, 2.05] of the original's speed.",
        "// Launch: grid (4, 1, 1), block (256, 1, 1), shared 0 B.",
        "// Configuration: BLOCK=256 PER=4.",
    ]
    assert source == found.dispatch[0].source
    assert "job job1, 2026-01-02." in report_html(found)


def test_a_hostile_name_stays_within_its_comment() -> None:
    job = result().job
    for name in ("a\nint x;", "a\\", "a??/", "a\r int x;", "a\u2028b"):
        found = result(job=job.model_copy(update={"name": name}))
        head = tuned_file(found, entry("n=4096", BEST, SOURCE)).removesuffix(SOURCE)
        lines = head.rstrip("\n").split("\n")
        assert all(line.startswith("//") and "\\" not in line and "??/" not in line for line in lines)
        assert "\r" not in head and "\u2028" not in head


def test_two_configurations_of_one_text_are_two_kernels_in_the_report() -> None:
    """They may differ in their launches alone."""
    other = {**BEST, "BLOCK": 128}
    both = result(dispatch=(entry("n=4096", BEST, SOURCE), entry("n=1001", other, SOURCE)))
    assert report_html(both).count("<h2>Tuned source for") == 2
