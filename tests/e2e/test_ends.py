"""However `warpsmith tune` ends, everything that it started ends with it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.deadlines import stretched
from tests.e2e.test_job import wide_job
from tests.e2e.tuning import Tuning, left_after

pytestmark = pytest.mark.slow

GOES_ON = "interrupted; the same command goes on"


@pytest.fixture
def tuning(tmp_path: Path) -> Iterator[Tuning]:
    """A tune in the middle of its search: service, worker, pools and children are there."""
    made = Tuning(tmp_path, wide_job(trials=200))
    try:
        made.wait_until(lambda said: "searching" in said)
        yield made
    finally:
        made.close()


NIGHTLY = [pytest.param(signum, marks=pytest.mark.nightly) for signum in (signal.SIGTERM, signal.SIGHUP)]


@pytest.mark.parametrize("signum", [signal.SIGINT, *NIGHTLY])
def test_a_signal_ends_everything_that_tune_started(tuning: Tuning, signum: signal.Signals) -> None:
    family = tuning.family()
    assert len(family) >= 5, "a service, a worker, pools and their children"
    tuning.process.send_signal(signum)
    tuning.process.send_signal(signum)  # as `timeout` does
    assert tuning.process.wait(stretched(20)) == 128 + signum
    assert tuning.said.rstrip().endswith(GOES_ON)
    assert left_after(family, 3) == []


def test_a_tune_that_is_killed_leaves_nothing_behind(tuning: Tuning) -> None:
    family = tuning.family()
    tuning.process.kill()
    tuning.process.wait()
    assert left_after(family, 20) == []


def test_timeout_leaves_nothing_behind(tmp_path: Path) -> None:
    made = Tuning(tmp_path, wide_job(trials=200), under=("timeout", "3600"))
    try:
        made.wait_until(lambda said: "searching" in said)
        family = made.family()
        assert len(family) >= 6, "what a tune in its search has, below `timeout`"
        made.process.send_signal(signal.SIGALRM)  # its time is over
        assert made.process.wait(stretched(25)) == 124
        assert GOES_ON in made.said
        assert left_after([*family, *made.family()], 3) == []
    finally:
        made.close()


def test_what_was_interrupted_goes_on_with_its_job(tmp_path: Path) -> None:
    job = wide_job(trials=12)
    first = Tuning(tmp_path, job)
    try:
        first.wait_until(lambda said: "job " in said)
        os.kill(first.process.pid, signal.SIGTERM)
        assert first.process.wait(stretched(20)) == 128 + signal.SIGTERM
    finally:
        first.close()
    second = Tuning(tmp_path, job)
    try:
        assert second.process.wait(stretched(150)) == 0, second.said + second.log()
    finally:
        second.close()
    begun = [line.split()[1] for line in second.said.splitlines() if line.startswith("job ")]
    assert len(begun) == 2 and begun[0] == begun[1]
