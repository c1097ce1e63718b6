"""The bench of the demo: what it counts as a gain, and its page."""

from pathlib import Path

import pytest

from benchmarks.first_hour.demo import busy_processes, gained, page, run
from testbed.child_processes import descendants

ROW = {"seconds": 70.1, "exit": 0, "load": 5.0, "speedup": 3.0, "verdicts": ["faster", "faster"]}
ROW |= {"speedups": [2.0, 4.5], "trials": 90}


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, True),
        ({"verdicts": ["faster", "equal"]}, False),
        ({"speedup": 1.4}, False),
        ({"verdicts": []}, False),
    ],
)
def test_a_gain_is_on_every_workload_and_large(changed: dict[str, object], counts: bool) -> None:
    assert gained(ROW | changed) is counts


def test_a_run_that_leaves_no_result_says_why(tmp_path: Path) -> None:
    row = run(["sh", "-c", "echo no device >&2; exit 3"], tmp_path, tmp_path)
    assert row["exit"] == 3
    assert "no device" in row["failed"]
    assert not gained(row)


def test_the_page_has_a_row_for_every_run() -> None:
    failed = {"seconds": 1.0, "exit": 3, "load": 0.1, "failed": "no device"}
    record = {"device": "cpu", "commit": "abc", "when": "now", "cores": 2, "command": "c", "busy": 4}
    text = page(record | {"fresh_clone": ROW, "runs": [ROW, failed]})
    assert "1 of 2 runs faster" in text
    assert "| 1 | 3.00 | 2.0, 4.5 | faster, faster | 90 | 70.1 | 5.0 |" in text
    assert "| 2 | failed, exit 3 |" in text


def test_busy_processes_end() -> None:
    before = descendants()
    with busy_processes(2):
        assert len(descendants()) == len(before) + 2
    assert descendants() == before
