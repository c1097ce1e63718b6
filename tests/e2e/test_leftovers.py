"""What `warpsmith tune` leaves in the temporary folder: nothing, however it ends."""

import os
import signal
from pathlib import Path

import pytest

from testbed.deadlines import comes_true, stretched
from tests.e2e.test_job import wide_job
from tests.e2e.tuning import Tuning, left_after

pytestmark = pytest.mark.slow


def test_nothing_is_left_after_a_good_end_or_after_a_kill(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    tuning = Tuning(tmp_path / "one", wide_job(trials=200, n=4096), TMPDIR=str(temporary))
    try:
        tuning.wait_until(lambda said: "searching" in said)
        assert comes_true(lambda: any(temporary.glob("*/warpsmith-*")), 20), "its children have folders"
        family = tuning.stopped_family()  # nobody may clear up for another
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        tuning.process.wait()
        assert left_after(family, 10) == []
        assert any(temporary.iterdir()), "SIGKILL leaves no time"
    finally:
        tuning.close()
    second = Tuning(tmp_path / "two", wide_job(trials=4, n=4096), TMPDIR=str(temporary))
    try:
        assert second.process.wait(stretched(120)) == 0, second.said + second.log()
        assert [p.name for p in temporary.rglob("*")] == []
    finally:
        second.close()


def test_whoever_outlives_a_killed_tune_clears_up(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    tuning = Tuning(tmp_path / "one", wide_job(trials=200, n=4096), TMPDIR=str(temporary))
    try:
        tuning.wait_until(lambda said: "searching" in said)
        family = tuning.family()
        tuning.process.kill()
        tuning.process.wait()
        assert left_after(family, 20) == []
        assert [p.name for p in temporary.rglob("*")] == []
    finally:
        tuning.close()
