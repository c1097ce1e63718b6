"""A worker that is told to go, and workers of two versions that meet."""

import threading
import time
from collections.abc import Iterator

import pytest

import worker.main
from db.admin.program_version import VERSION
from db.engine import Database
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.result_views import worker_list
from db.views.unserved_jobs import NO_DEVICE, unserved
from testbed.deadlines import stretched
from testbed.rows import add_job
from tests.worker.test_processes import AT_NIGHT, Fleet, fleet
from warpsmith.domain.state import JobState
from warpsmith.errors import NotFound, Unavailable
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from worker.stop_request import StopRequest

__all__ = ["fleet"]


@pytest.fixture
def stop() -> Iterator[StopRequest]:
    """A request that nobody has made."""
    made = StopRequest()
    yield made
    made.close()


@pytest.mark.parametrize("fleet", ["full", AT_NIGHT["embedded"]], indirect=True)
def test_a_drained_worker_ends_its_slice_and_goes(fleet: Fleet) -> None:
    process = fleet.start(trial_s=0.1)
    # More trials than a slice has time for, and far more than are run here.
    job = fleet.submit(scale_job(budget={"trials": 16, "seconds": 600}))
    fleet.wait(job, lambda s: s.trials_done >= 2)
    with fleet.database.read() as session:
        (view,) = worker_list(session).items
    assert view.version == VERSION and view.devices
    with fleet.database.write() as session:
        WorkerRepository(session).drain(view.id)
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
    with pytest.raises(NotFound, match="warpsmith workers"), fleet.database.write() as session:
        WorkerRepository(session).drain(view.id)


def test_a_worker_of_another_version_is_refused(
    migrated_sqlite: str, stop: StopRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(_env_file=None, database_url=migrated_sqlite)
    database = Database(settings.sqlalchemy_url)
    with database.write() as session:
        workers = WorkerRepository(session)
        workers.register("same", "here", 1, VERSION, [], [DEVICE], {})
        workers.register("other", "elsewhere", 1, "0.0.9+7", [], [DEVICE], {})
    monkeypatch.setattr(worker.main, "SCHEMA_WAIT_S", 0.0)
    with pytest.raises(Unavailable, match=r"elsewhere is of version 0\.0\.9\+7.*warpsmith drain other"):
        worker.main._wait_for_schema(settings, stop)
    monkeypatch.setattr(worker.main, "SCHEMA_WAIT_S", 20.0)

    def end() -> None:
        time.sleep(0.7)
        with database.write() as session:
            WorkerRepository(session).stop("other")

    ending = threading.Thread(target=end)
    ending.start()
    worker.main._wait_for_schema(settings, stop)
    ending.join()
    database.dispose()


@pytest.mark.parametrize("others", [(), ("other",)])
def test_a_worker_that_goes_does_not_speak_for_the_machine(
    database: Database, others: tuple[str, ...]
) -> None:
    """In the embedded mode, a job fails at once where the only worker has no device for it."""
    with database.write() as session:
        workers = WorkerRepository(session)
        workers.register("going", "here", 1, VERSION, [], [DEVICE], {})
        job = add_job(session)
        workers.drain("going")
        for name in others:
            workers.register(name, "here", 2, VERSION, [], [], {})
        found = unserved(session, job, limit_s=0.0)
    assert found is not None
    assert found.is_over(begun=True) == found.is_over(begun=False) == bool(others)
    assert list(found.lacking) == [NO_DEVICE] * len(others)
