"""A stage that stands still: seen while it stands, ended and tried again, so that its job reaches its end."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from db import migrate
from db.engine import Database, open_database
from db.message_names import AGENT_QUEUE, CONTROL_QUEUE, device_queue
from db.queue.broker import Notifier
from db.queue.lease import Lease
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.tables import TaskRow
from db.views.job_status import job_status
from testbed.deadlines import HANGS_S, comes_true, stretched
from tests.worker.test_execute import context, handle_all, submit
from warpsmith.domain.device import Backend
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.processes import stop_children
from warpsmith.sandbox import probe_devices
from warpsmith.sandbox.hosts.halted_children import HaltedChildren
from warpsmith.sandbox.transport.process import ChildProcess
from warpsmith.settings import Settings
from warpsmith.system.progress_marker import PROGRESS, ProgressMarker
from warpsmith.testing.jobs import scale_job
from worker import brokerless, stage_watch, task_runner
from worker.advance import advance
from worker.device.device_setup import RealDeviceSetup
from worker.device.process_context import Context
from worker.works.outcome import Done
from worker.works.verify import verify

__all__ = ["context"]

PLACE = "verification: pairs of n=4096, process 2 of 3"
JOB = scale_job(budget={"trials": 4, "seconds": 60})
SLOW = """
import time
def reference(inputs, dims):
    time.sleep(0.2)
    return {'y': 2.0 * inputs['x']}
"""


def failures(database: Database, job_id: str, kind: TaskKind) -> list[str]:
    """What the failed attempts at the tasks of a kind say, with their causes."""
    with database.read() as session:
        tasks = [t for t in TaskRepository(session).of_job(job_id) if t.kind is kind]
    return [f"{entry['cause']}: {entry['detail']}" for t in tasks for entry in t.history]


def stands(limit_s: float, context: Context) -> None:
    context.settings = context.settings.model_copy(update={"stall_s": limit_s})


def test_a_stage_that_waits_for_ever_is_seen_ended_and_tried_again(
    context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stage_watch, "LONG_S", 0.5)
    attempts: list[int] = []
    details: list[str] = []

    def waits_once(made: Context, row: TaskRow, lease: Lease) -> Done:
        attempts.append(row.attempt)
        if len(attempts) > 1:
            return verify(made, row, lease)
        PROGRESS.at(PLACE)
        halted = HaltedChildren()
        halted.halt()
        seen = threading.Thread(target=lambda: comes_true(told, HANGS_S), daemon=True)
        seen.start()
        halted.wait_to_go()
        raise AssertionError("nobody let it go")

    def told() -> bool:
        with context.database.read() as session:
            details.append(job_status(session, job_id).detail)
        return PLACE in details[-1] or len(attempts) > 1

    stands(3.0, context)
    monkeypatch.setitem(task_runner.WORK, TaskKind.VERIFY, waits_once)
    job_id = submit(context.database, JOB)
    with caplog.at_level(logging.INFO):
        handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
    assert status.state is JobState.DONE, status.detail
    assert PLACE not in status.detail
    assert any(d.startswith("measuring winners again") and d.endswith(f"; now: {PLACE}") for d in details)
    assert failures(context.database, job_id, TaskKind.VERIFY) == [
        f"stalled: nothing moved for 3 s at: {PLACE}"
    ]
    assert f"so far at: {PLACE}" in caplog.text
    assert "in wait_to_go" in caplog.text, "the stacks are logged"


def test_an_attempt_that_nothing_ends_is_failed_and_its_process_ends(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_watch, "GRACE_S", 0.2)
    released = threading.Event()
    statuses: list[int] = []
    states: list[TaskState] = []

    def stuck(_context: Context, _row: TaskRow, _lease: Lease) -> Done:
        PROGRESS.at(PLACE)
        assert released.wait(HANGS_S)
        return Done(None)

    def ended(status: int) -> None:
        statuses.append(status)
        with context.database.read() as session:
            states.extend(t.state for t in TaskRepository(session).of_job(job_id))
        released.set()

    context.end_process = ended
    stands(0.5, context)
    monkeypatch.setitem(task_runner.WORK, TaskKind.BASELINE, stuck)
    job_id = submit(context.database, JOB)
    advance(context.database, job_id)
    with context.database.read() as session:
        (task,) = TaskRepository(session).of_job(job_id)
    assert task_runner.run_task(context, task.id)
    assert statuses == [task_runner.STALLED_STATUS]
    assert states == [TaskState.QUEUED], "it is tried again before anything else"
    assert failures(context.database, job_id, TaskKind.BASELINE) == [
        f"stalled: nothing moved for 0.5 s at: {PLACE}"
    ]


def test_what_moves_is_not_ended(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(made: Context, row: TaskRow, lease: Lease) -> Done:
        for move in (PROGRESS.moved, lambda: PROGRESS.at("elsewhere")) * 4:
            time.sleep(0.3)
            move()
        with PROGRESS.longer(60):
            time.sleep(2.5)
        PROGRESS.moved()
        return verify(made, row, lease)

    stands(2.0, context)
    monkeypatch.setitem(task_runner.WORK, TaskKind.VERIFY, slow)
    job_id = submit(context.database, JOB)
    handle_all(context)
    assert failures(context.database, job_id, TaskKind.VERIFY) == []
    with context.database.read() as session:
        assert job_status(session, job_id).state is JobState.DONE


def test_a_place_and_a_wait_take_each_others_turn_in_the_detail(context: Context) -> None:
    job_id = submit(context.database, JOB)

    def detail(change: Callable[[WaitRepository], None]) -> str:
        with context.database.write() as session:
            change(WaitRepository(session))
        with context.database.read() as session:
            return JobRepository(session).get(job_id).detail

    own = detail(lambda waits: waits.note(job_id, ""))
    assert detail(lambda waits: waits.stands(job_id, "here")) == f"{own}; now: here"
    assert detail(lambda waits: waits.note(job_id, "a device")) == f"{own}; waits: a device"
    assert detail(lambda waits: waits.stands(job_id, "there")) == f"{own}; now: there"
    assert detail(lambda waits: waits.stands(job_id, "")) == own


def test_no_honest_step_takes_as_long_as_the_limit() -> None:
    made = Settings(_env_file=None)
    assert made.stall_limit_s == 60 + 3 * 20 + 120 + 60 + 120 + 60
    assert Settings(_env_file=None, run_timeout_s=100).stall_limit_s == made.stall_limit_s + 240
    assert Settings(_env_file=None, stall_s=5).stall_limit_s == 5


def test_a_longer_step_ends_with_its_context() -> None:
    place = ProgressMarker()
    time.sleep(0.01)
    before = place.still_s()
    assert before > 0
    with place.longer(100):
        assert place.still_s() < -90
    assert place.still_s() >= before


@pytest.fixture
def on_pocl(tmp_path: Path) -> Iterator[Context]:
    """A worker of this process with a real device."""
    settings = Settings(_env_file=None, data_dir=tmp_path, stall_s=max(4.0, stretched(2)))
    device = next(d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    migrate.upgrade(settings.sqlalchemy_url)
    database, notifier, setup = open_database(settings), Notifier(settings), RealDeviceSetup(settings, device)
    queues = [CONTROL_QUEUE, AGENT_QUEUE, device_queue(device.device_class)]
    with database.write() as session:
        WorkerRepository(session).register("w", os.uname().nodename, 1, "0", queues, [device], {})
    yield Context(settings, database, notifier, "w", setup)
    setup.close()
    notifier.close()
    database.dispose()


def test_a_job_whose_reference_child_was_stopped_reaches_its_end(on_pocl: Context) -> None:
    job = scale_job(
        reference={"kind": "numpy", "source": SLOW}, budget={"rounds": 1, "trials": 3, "seconds": 20}
    )
    job_id = submit(on_pocl.database, job)
    stopped: list[int] = []
    over = threading.Event()

    def stop_one() -> None:
        """Stop the first child of this process that computes a reference, as nothing will wake it."""
        while not over.wait(0.01) and not stopped:
            for child in list(stop_children._work.running):
                if isinstance(child, ChildProcess) and _name(child._process.pid) == "reference_child":
                    os.kill(child._process.pid, signal.SIGSTOP)
                    stopped.append(child._process.pid)
                    return

    stopping = threading.Thread(target=stop_one, daemon=True)
    stopping.start()
    device = on_pocl.device_setup().ports.opener.info
    queues = (CONTROL_QUEUE, AGENT_QUEUE, device_queue(device.device_class))

    def ended() -> bool:
        brokerless.step(on_pocl, queues)
        with on_pocl.database.read() as session:
            return JobRepository(session).get(job_id).state.is_terminal

    try:
        advance(on_pocl.database, job_id, 0.0)
        assert comes_true(ended, 200)
    finally:
        over.set()
        stopping.join()
    with on_pocl.database.read() as session:
        status = job_status(session, job_id)
    assert status.state is JobState.DONE, status.detail
    assert stopped
    assert not Path(f"/proc/{stopped[0]}").exists(), "it was killed"
    (why,) = failures(on_pocl.database, job_id, TaskKind.BASELINE)
    assert why.startswith("stalled: nothing moved for ")
    assert "at: baseline: n=4096" in why


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
