"""Turns on a device between real processes: who has it, who is next, and what the budget pays."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from db.engine import Database
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.job_status import job_status
from db.views.snapshot import elapsed_s
from testbed.deadlines import HANGS_S
from testbed.fakes import FakeOpener
from testbed.rows import add_task
from tests.worker.test_execute import context, handle_all, submit
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.state import JobState
from warpsmith.errors import LeaseLost
from warpsmith.system.own_locks import lock_folder
from warpsmith.system.temporary_folder import temporary_folder
from warpsmith.testing.jobs import DEVICE, scale_job
from worker.device.device_lock import POLL_S, device_lock
from worker.device.process_context import Context

__all__ = ["context"]

ROOT = Path(__file__).resolve().parents[2]
HELD_S = 1.0


@contextmanager
def held_elsewhere(device: DeviceInfo, seconds: float) -> Iterator[int]:
    """Another process has the device; its id."""
    words = [sys.executable, "-m", "tests.worker.lock_holder", device.model_dump_json(), str(seconds)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            yield holder.pid
        finally:
            holder.kill()


@pytest.fixture
def device() -> Iterator[DeviceInfo]:
    uid = f"a lock of test {os.getpid()}"
    yield DEVICE.model_copy(update={"uid": uid})
    for path in lock_folder().glob(f"device-*{uid.replace(' ', '-')}.*"):
        path.unlink()


def test_whoever_waits_is_told_who_has_the_device(device: DeviceInfo) -> None:
    heard: list[str] = []
    with held_elsewhere(device, HANGS_S) as pid:

        def hear(words: str) -> None:
            heard.append(words)
            # A holder that ends by itself takes its name away before it lets go.
            os.kill(pid, signal.SIGKILL)

        with device_lock(device, hear):
            pass
    assert heard and set(heard) == {f"the device is held by process {pid}"}


def test_a_process_that_is_killed_holds_nothing(device: DeviceInfo) -> None:
    with held_elsewhere(device, HANGS_S):
        pass
    heard: list[str] = []
    with device_lock(device, heard.append):
        assert heard == []


def test_a_wait_ends_with_what_it_is_for(device: DeviceInfo) -> None:
    def cancelled(_words: str) -> None:
        raise LeaseLost("cancelled")

    with held_elsewhere(device, HANGS_S), pytest.raises(LeaseLost), device_lock(device, cancelled):
        raise AssertionError("the device is not free")


def test_who_needs_the_device_again_and_again_keeps_nobody_from_it(device: DeviceInfo) -> None:
    order: list[str] = []
    ready = threading.Event()

    def other() -> None:
        with device_lock(device, lambda _words: ready.set()):
            order.append("other")

    thread = threading.Thread(target=other)
    with device_lock(device):
        thread.start()
        assert ready.wait(HANGS_S)
        time.sleep(2 * POLL_S)
    with device_lock(device):
        order.append("first again")
    thread.join()
    assert order == ["other", "first again"]


def test_waiting_for_the_device_costs_no_budget_and_is_said(context: Context, device: DeviceInfo) -> None:
    setup = context.device_setup()
    assert isinstance(setup.ports.opener, FakeOpener)
    setup.ports.opener.info = device
    with context.database.write() as session:
        WorkerRepository(session).register("w2", "host", 1, "0", ["control"], [device], {})
    job_id = submit(context.database, scale_job(budget={"trials": 4, "seconds": 600}))
    said: list[str] = []
    over = threading.Event()

    def look(holder: int) -> None:
        while not over.wait(0.05):
            with context.database.read() as session:
                said.append(job_status(session, job_id).detail)
            if "waits" in said[-1]:
                time.sleep(HELD_S)
                os.kill(holder, signal.SIGKILL)
                break
        over.wait()
        with context.database.read() as session:
            said.append(job_status(session, job_id).detail)

    began = time.monotonic()
    with held_elsewhere(device, HANGS_S) as pid:
        watcher = threading.Thread(target=look, args=(pid,))
        watcher.start()
        try:
            handle_all(context)
        finally:
            over.set()
            watcher.join()
    took = time.monotonic() - began
    with context.database.read() as session:
        row = JobRepository(session).get(job_id)
        status = job_status(session, job_id)
        elapsed = elapsed_s(session, row)
    assert status.state is JobState.DONE, status.detail
    assert f"measuring the kernel as it is; waits: the device is held by process {pid}" in said
    assert "waits" not in said[-1]
    assert elapsed < took - HELD_S + 0.1


def test_a_later_wait_costs_no_budget_either(database: Database) -> None:
    began = time.monotonic()
    with database.write() as session:
        job_id = JobRepository(session).create(scale_job())[0].id
        first, second = (add_task(session, job_id).id for _ in range(2))
        waits = WaitRepository(session)
        waits.begin(job_id)
        waits.end(job_id, first)
    with database.write() as session:
        row = JobRepository(session).get(job_id)
        assert row.started_at is not None and row.waited_s == 0.0
        WaitRepository(session).begin(job_id)
    time.sleep(0.5)
    with database.read() as session:
        before = elapsed_s(session, JobRepository(session).get(job_id))
        shown = job_status(session, job_id).seconds_left
        assert before <= time.monotonic() - began - 0.5
        assert shown is not None and shown == pytest.approx(60 - before, abs=0.01)
    with database.write() as session:
        WaitRepository(session).end(job_id, second)
    with database.read() as session:
        row = JobRepository(session).get(job_id)
        tasks = TaskRepository(session)
        assert row.waiting_since is None
        assert row.waited_s == pytest.approx(tasks.get(second).waited_s) and row.waited_s >= 0.5
        assert tasks.get(first).waited_s == 0.0
        assert before <= elapsed_s(session, row) <= time.monotonic() - began - 0.5


def test_another_user_cannot_keep_the_lock(
    device: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else has the folder's name first, as a folder that everybody may enter or a link."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    first = lock_folder()
    assert first.is_relative_to(tmp_path / "home")
    first.chmod(0o777)
    with device_lock(device):
        assert lock_folder() == tmp_path / f"warpsmith-{os.getuid()}"
        assert [p.name[:7] for p in lock_folder().iterdir()] == ["device-", "device-"]
    first.rmdir()
    first.symlink_to(tmp_path)
    assert lock_folder() == tmp_path / f"warpsmith-{os.getuid()}"


def test_workers_with_different_temporary_folders_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm gives each task a temporary folder of its own, and so does every command."""
    for home in (tmp_path / "home", Path(os.devnull)):
        monkeypatch.setenv("HOME", str(home))
        before = lock_folder()
        with temporary_folder():
            assert lock_folder() == before
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = lock_folder()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert lock_folder() == before
