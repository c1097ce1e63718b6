"""Replays of jobs that had two devices: real rows, two workers at once over fake devices."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from db.engine import Database
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.tables import TaskRow
from testbed.deadlines import HANGS_S
from testbed.replay import replay
from tests.worker.setup_fakes import FakeSetup
from tests.worker.test_execute import SilentNotifier
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import SliceBasis, SlicePayload
from worker import task_runner
from worker.advance import advance
from worker.device.process_context import Context


@pytest.fixture
def contexts(database: Database, tmp_path: Path) -> list[Context]:
    """Two workers with a device each."""
    url = database.engine.url.render_as_string(hide_password=False)
    # Slices so short that they end while the other device has one, which is when another is begun beside it.
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url=url, reuse_trials_s=0, slice_s=0.04)
    made = []
    for n in range(2):
        device = DEVICE.model_copy(update={"uid": f"test-{n}", "index": n})
        with database.write() as session:
            WorkerRepository(session).register(f"w{n}", "host", 1, "0", ["control"], [device], {})
        made.append(
            Context(settings, database, SilentNotifier(), f"w{n}", FakeSetup(trial_s=0.005 * (n + 1)))
        )
    return made


def run(contexts: list[Context], trials: int = 20, **changes: Any) -> str:
    """A job that both workers work on until it has ended; its id."""
    database = contexts[0].database
    budget = {"trials": trials, "seconds": 600, "rounds": 2}
    job = scale_job(budget=budget, rewrite={"enabled": False}, **changes)
    with database.write() as session:
        name = JobRepository(session).create(job)[0].id
    ended = threading.Event()

    def serve(context: Context) -> None:
        while not ended.wait(0.005):
            with database.write() as session:
                WorkerRepository(session).heartbeat(context.worker_id)
                outbox = OutboxRepository(session)
                messages = outbox.waiting()
                outbox.mark_published([b.id for b in messages])
            if messages:
                advance(database, name)
            task_runner.run_next(context, "agents")
            task_runner.run_next(context, f"gpu.{DEVICE.device_class}")
            with database.read() as session:
                if JobRepository(session).get(name).state.is_terminal:
                    ended.set()

    with ThreadPoolExecutor(len(contexts)) as pool:
        for done in [pool.submit(serve, c) for c in contexts]:
            done.result(HANGS_S)
    return name


def seen(database: Database, job: str) -> list[SliceBasis]:
    """What was recorded with every slice, in order."""
    with database.read() as session:
        rows = TaskRepository(session).of_job(job)
        return [t.payload.seen for t in rows if isinstance(t.payload, SlicePayload) and t.payload.seen]


def test_a_job_of_two_devices_is_decided_again_as_it_was(contexts: list[Context]) -> None:
    job = run(contexts)
    database = contexts[0].database
    recorded = seen(database, job)
    assert [s.devices for s in recorded] == [2] * len(recorded)
    assert recorded[0] == SliceBasis(devices=2, beside=0, trials=0)
    assert {s.beside for s in recorded} == {0, 1}, "no slice joined another"
    with database.read() as session:
        assert JobRepository(session).get(job).state is JobState.DONE
        found = replay(session, job, {})
    assert found.differences == ()
    assert found.candidates >= 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("field", "value"), [("devices", 1), ("trials", 0), ("beside", 1)])
def test_a_replay_sees_that_another_number_would_have_decided_otherwise(
    contexts: list[Context], field: str, value: int
) -> None:
    job = run(contexts, trials=8)
    database = contexts[0].database
    with database.write() as session:
        rows = session.scalars(select(TaskRow).where(TaskRow.kind == TaskKind.SLICE)).all()
        row = sorted(rows, key=lambda r: r.number)[1]
        assert isinstance(row.payload, SlicePayload) and row.payload.seen is not None
        assert getattr(row.payload.seen, field) != value
        other = row.payload.seen.model_copy(update={field: value})
        row.payload = row.payload.model_copy(update={"seen": other})
    with database.read() as session:
        found = replay(session, job, {})
    assert found.differences
