"""A worker that is told to go, and workers of two versions that meet."""

import threading
import time

import pytest

import worker.main
from db import worker_admin
from db.engine import Database
from db.program_version import VERSION
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.result_views import worker_list
from testbed.deadlines import stretched
from tests.worker.test_processes import Fleet, fleet
from warpsmith.domain.state import JobState
from warpsmith.errors import NotFound, Unavailable
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job

__all__ = ["fleet"]


def test_a_drained_worker_ends_its_slice_and_goes(fleet: Fleet) -> None:
    process = fleet.start(trial_s=0.1)
    # More trials than a slice has time for, and far more than are run here.
    job = fleet.submit(scale_job(budget={"trials": 16, "seconds": 600}))
    fleet.wait(job, lambda s: s.trials_done >= 2)
    with fleet.database.read() as session:
        (view,) = worker_list(session).items
    assert view.version == VERSION and view.devices
    url = fleet.database.engine.url.render_as_string(hide_password=False)
    worker_admin.drain(view.id, Settings(_env_file=None, database_url=url))
    with fleet.database.read() as session:
        (view,) = worker_list(session).items
    assert "drain" in view.unavailable and not view.devices
    assert process.wait(stretched(20)) == 0
    with fleet.database.read() as session:
        assert worker_list(session).items == ()
        assert TaskRepository(session).held_by(view.id) == 0
        assert not any(t.history and t.attempt for t in TaskRepository(session).of_job(job)), (
            "it cost an attempt"
        )
    fleet.start()
    status = fleet.wait(job, lambda s: s.state.is_terminal)
    assert (status.state, status.trials_done) == (JobState.DONE, 16)
    with pytest.raises(NotFound, match="warpsmith workers"):
        worker_admin.drain(view.id, Settings(_env_file=None, database_url=url))


def test_a_worker_of_another_version_is_refused(
    migrated_sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(_env_file=None, database_url=migrated_sqlite)
    database = Database(settings.sqlalchemy_url)
    with database.write() as session:
        workers = WorkerRepository(session)
        workers.register("same", "here", 1, VERSION, [], [DEVICE], {})
        workers.register("other", "elsewhere", 1, "0.0.9+7", [], [DEVICE], {})
    monkeypatch.setattr(worker.main, "SCHEMA_WAIT_S", 0.0)
    with pytest.raises(Unavailable, match=r"elsewhere is of version 0\.0\.9\+7.*warpsmith drain other"):
        worker.main._wait_for_schema(settings, threading.Event())
    monkeypatch.setattr(worker.main, "SCHEMA_WAIT_S", 20.0)

    def end() -> None:
        time.sleep(0.7)
        with database.write() as session:
            WorkerRepository(session).stop("other")

    ending = threading.Thread(target=end)
    ending.start()
    worker.main._wait_for_schema(settings, threading.Event())
    ending.join()
    database.dispose()
