"""A worker whose own clock is wrong by a minute serves jobs as any other: all compare the shared clock."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Self

import pytest

import db.engine
import db.identifiers
from db.message_names import AGENT_QUEUE, device_queue
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.remote_compilations import CompilationRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.job_status import job_status
from tests.worker.test_execute import context, submit
from warpsmith.domain.state import JobState
from warpsmith.testing.jobs import DEVICE, scale_job
from worker import task_runner
from worker.advance import advance
from worker.device.process_context import Context

__all__ = ["context"]

OURS = ("db", "worker", "agents", "warpsmith")
QUIET_S = 30.0
"""Less than the clock is wrong by."""
QUEUES = (AGENT_QUEUE, device_queue(DEVICE.device_class))


class _Time:
    """The module `time`, with a wrong date."""

    def __init__(self, wrong_s: float) -> None:
        self._wrong_ns = int(wrong_s * 1e9)

    def time_ns(self) -> int:
        import time

        return time.time_ns() + self._wrong_ns


@contextmanager
def wrong_clock(seconds: float) -> Iterator[None]:
    """This process's clock is wrong; the database's is right, on SQLite, too."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(seconds=seconds)

    right = db.engine.utc_now
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] not in OURS:
                continue
            if getattr(module, "utc_now", None) is right:
                patch.setattr(module, "utc_now", lambda: right() + timedelta(seconds=seconds))
            # On SQLite that module reads the shared clock from the machine.
            if name != "db.engine" and getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", Wrong)
        patch.setattr(db.identifiers, "time", _Time(seconds))
        yield


@pytest.mark.parametrize("wrong_s", [-60.0, 60.0])
@pytest.mark.parametrize("wrong_first", [True, False])
def test_two_workers_share_a_job_though_one_has_a_wrong_clock(
    context: Context, wrong_s: float, wrong_first: bool
) -> None:
    """They take turns at decisions and at tasks; no turn passes without work."""
    database = context.database
    job = submit(database, scale_job(budget={"trials": 12, "seconds": 50}))
    wrong = wrong_first
    for _ in range(50):
        with wrong_clock(wrong_s if wrong else 0.0):
            advance(database, job)
        wrong = not wrong
        with database.read() as session:
            if JobRepository(session).get(job).state.is_terminal:
                break
        with wrong_clock(wrong_s if wrong else 0.0):
            with database.write() as session:
                WorkerRepository(session).heartbeat(context.worker_id)
            assert any(task_runner.run_next(context, queue) for queue in QUEUES), "nobody sees the task"
    with database.read() as session:
        status = job_status(session, job)
        tasks = TaskRepository(session).of_job(job)
    assert (status.state, status.trials_done) == (JobState.DONE, 12), status.detail
    assert not any(t.history for t in tasks), "an attempt was lost"
    times = [t for task in tasks for t in (task.created_at, task.started_at, task.finished_at) if t]
    assert times == sorted(times), "the times in rows are of two clocks"
    assert max(times) - min(times) < timedelta(seconds=QUIET_S)


@pytest.mark.parametrize("wrong_s", [-60.0, 60.0])
def test_a_maintenance_loop_with_a_wrong_clock_takes_nothing_from_anybody(
    context: Context, wrong_s: float
) -> None:
    database = context.database
    job = submit(database, scale_job())
    advance(database, job)
    with database.write() as session:
        OutboxRepository(session).mark_published([b.id for b in OutboxRepository(session).waiting()])
    idle = submit(database, scale_job())
    with wrong_clock(wrong_s), database.write() as session:
        tasks = TaskRepository(session)
        assert tasks.notify_quiet(QUIET_S) == []
        assert JobRepository(session).notify_idle(QUIET_S) == []
        assert WaitRepository(session).notify_unserved(QUIET_S) == []
        assert OutboxRepository(session).take_overdue("warpsmith.advance", QUIET_S) == []
        CompilationRepository(session).prune()
        claimed = tasks.claim_next(device_queue(DEVICE.device_class), context.worker_id, lease_s=20)
        assert claimed is not None
    with database.write() as session:
        assert TaskRepository(session).expire(3) == []
        assert OutboxRepository(session).take_overdue("warpsmith.advance", 0.0) == [idle]


@pytest.mark.parametrize("wrong_s", [-60.0, 60.0])
def test_a_worker_with_a_wrong_clock_is_seen_and_goes(context: Context, wrong_s: float) -> None:
    with wrong_clock(wrong_s), context.database.write() as session:
        WorkerRepository(session).register("late", "other", 1, "0", ["control"], [DEVICE], {})
    with context.database.read() as session:
        assert {w.id for w in WorkerRepository(session).seen_lately(5.0)} == {"w", "late"}
    with wrong_clock(wrong_s), context.database.read() as session:
        assert {w.id for w in WorkerRepository(session).seen_lately(5.0)} == {"w", "late"}
