"""A clock that is set, forward or back, neither pays a job's budget nor stops its time."""

import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

import db.engine
from db.queue.lease import Lease
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.views.job_status import job_status
from db.views.snapshot import elapsed_s
from testbed.rows import add_job, add_task
from tests.worker.test_execute import context, handle_all, submit
from warpsmith.domain.state import JobState
from warpsmith.settings import Settings
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.trials.slice import run_slice
from worker.device.process_context import Context
from worker.supervision.maintenance_loop import MaintenanceLoop
from worker.works import search_slice

__all__ = ["context"]

HOUR_S = 3600.0
Set = Callable[[float], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Set]:
    """Sets the clock that all workers share, of SQLite and of Postgres alike."""
    by_s = [0.0]
    right, right_utc = db.engine.clock, db.engine.utc_now

    def clock(session: Session, offset_s: float = 0.0) -> ColumnElement[datetime]:
        return right(session, offset_s + by_s[0])

    def utc_now() -> object:
        return right_utc() + timedelta(seconds=by_s[0])

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("db", "worker", "agents"):
            for attribute, old, new in (("clock", right, clock), ("utc_now", right_utc, utc_now)):
                if getattr(module, attribute, None) is old:
                    monkeypatch.setattr(module, attribute, new)

    def step(seconds: float) -> None:
        by_s[0] += seconds

    yield step


def seen(session: Session, job: str) -> float:
    return elapsed_s(session, JobRepository(session).get(job))


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
@pytest.mark.parametrize("when", ["before", "wait", "work", "between", "slow"])
def test_a_set_clock_is_not_worked_time(context: Context, set_clock: Set, by_s: float, when: str) -> None:
    database = context.database
    with database.write() as session:
        job = add_job(session).id
        JobRepository(session).move(job, JobState.QUEUED, JobState.BASELINE)
        first, second = (add_task(session, job).id for _ in range(2))
    began_s = time.monotonic()

    def work(task: str) -> None:
        with database.write() as session:
            row = TaskRepository(session).claim(task, "w", 20.0)
            assert row is not None and row.lease_token is not None
            WaitRepository(session).count(0.0, task)
            WaitRepository(session).end(job, task)
        with Lease(database, task, row.lease_token, "w", 20.0, 0.1):
            time.sleep(0.15)
            if when in ("work", "slow") and task == first:
                set_clock(by_s)
                time.sleep(0.25 if when == "slow" else 0.0)

    set_clock(by_s if when == "before" else 0.0)
    work(first)
    with database.write() as session:
        assert 0.1 <= seen(session, job) <= time.monotonic() - began_s + 0.1
        TaskRepository(session).give_back("w")
        if when != "wait":
            row = JobRepository(session).get(job)
            row.waiting_since, row.counted_at = None, db.engine.now(session)
    if when in ("wait", "between"):
        set_clock(by_s)
        with database.read() as session:
            assert seen(session, job) <= time.monotonic() - began_s + 0.1
    work(second)
    with database.read() as session:
        assert 0.25 <= seen(session, job) <= time.monotonic() - began_s + 0.1


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
def test_a_whole_job_is_paid_as_if_nobody_had_set_the_clock(
    context: Context, set_clock: Set, by_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped: list[float] = []

    def steps(*arguments: Any, **words: Any) -> Any:
        if not stepped:
            stepped.append(by_s)
            set_clock(by_s)
        return run_slice(*arguments, **words)

    monkeypatch.setattr(search_slice, "run_slice", steps)
    began_s = time.monotonic()
    job = submit(context.database, scale_job(budget={"trials": 6, "seconds": 50}))
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job)
        assert (status.state, status.trials_done, stepped) == (JobState.DONE, 6, [by_s]), status.detail
        assert seen(session, job) <= time.monotonic() - began_s + 1


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
def test_workers_that_share_a_job_count_its_seconds_once(
    context: Context, set_clock: Set, by_s: float
) -> None:
    """Each has seen all the seconds by itself."""
    with context.database.write() as session:
        job = add_job(session).id
        JobRepository(session).move(job, JobState.QUEUED, JobState.BASELINE)
        tasks = [add_task(session, job).id for _ in range(3)]
        WaitRepository(session).end(job, tasks[0])
        row = JobRepository(session).get(job)
        assert row.started_at is not None and row.counted_at is not None
        row.started_at -= timedelta(seconds=20)
        row.counted_at -= timedelta(seconds=3)
    set_clock(by_s)
    with context.database.write() as session:
        for task in tasks:
            WaitRepository(session).count(3.0, task)
        assert seen(session, job) == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
def test_the_maintenance_loop_counts_where_no_task_works(
    context: Context, set_clock: Set, by_s: float
) -> None:
    settings = Settings(_env_file=None, data_dir=context.settings.data_dir)
    loop = MaintenanceLoop(settings, context.database, context.notifier, "w")
    with context.database.write() as session:
        job = add_job(session).id
        JobRepository(session).move(job, JobState.QUEUED, JobState.PLANNING)
        WaitRepository(session).end(job, add_task(session, job).id)
    loop.sweep()
    set_clock(by_s)
    with context.database.read() as session:
        assert seen(session, job) < 2
        left = job_status(session, job).seconds_left
        assert left is not None and left > scale_job().budget.seconds - 2
    loop.sweep()
    with context.database.read() as session:
        assert seen(session, job) < 2
        assert abs(JobRepository(session).get(job).waited_s - by_s) < 2
