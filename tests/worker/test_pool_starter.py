"""Pools are forks of one warm process: what they are told, how they end, and what if that process is gone."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S, comes_true
from tests.worker.told_pool import TOLD
from worker.supervision.supervisor import PoolStarter


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> Iterator[PoolStarter]:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    made = PoolStarter("tests.worker.told_pool")
    yield made
    made.close()


def told(file: Path) -> list[str]:
    """Parent, folder, what it was told, and how many threads it may have."""
    assert comes_true(file.exists, 60)
    return file.read_text().split()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_each_pool_has_its_environment_and_the_worker_s_folder(starter: PoolStarter, tmp_path: Path) -> None:
    pools = [starter.start([str(tmp_path / f"{n}"), ""], {TOLD: f"pool{n}"}) for n in range(2)]
    found = [told(tmp_path / f"{n}") for n in range(2)]
    assert [words[1:] for words in found] == [[str(Path.cwd()), f"pool{n}", "1"] for n in range(2)]
    assert found[0][0] == found[1][0] != str(os.getpid()), "both are forks of one process"
    assert TOLD not in os.environ
    for pool in pools:
        assert pool.poll() is None
        pool.terminate()
        assert pool.wait(HANGS_S) == -signal.SIGTERM


@pytest.mark.parametrize("status", [0, 3])
def test_the_status_of_a_pool_is_known(starter: PoolStarter, tmp_path: Path, status: int) -> None:
    pool = starter.start([str(tmp_path / "told"), str(status)], {TOLD: "x"})
    assert pool.wait(HANGS_S) == status
    pool.kill()  # it has ended, and so nothing happens


def test_pools_end_with_the_process_that_they_were_forked_from_and_the_next_are_programs(
    starter: PoolStarter, tmp_path: Path
) -> None:
    pool = starter.start([str(tmp_path / "first"), ""], {TOLD: "x"})
    warm = int(told(tmp_path / "first")[0])
    os.kill(warm, signal.SIGKILL)
    assert pool.wait(HANGS_S) == -signal.SIGKILL
    assert comes_true(lambda: gone(pool.pid), 60)
    second = starter.start([str(tmp_path / "second"), ""], {TOLD: "y"})
    try:
        assert told(tmp_path / "second") == [str(os.getpid()), str(Path.cwd()), "y", "1"]
    finally:
        second.kill()
        second.wait(HANGS_S)
