"""Real Celery pools on the file-system transport and on Redis, killed without warning."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from db.engine import Database
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import CandidateRow, TaskRow
from db.views.job_status import job_status
from testbed.deadlines import Deadline, comes_true, stretched
from tests.worker.fake_pool import LEDGER, TRIAL_S
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState, TaskState
from warpsmith.domain.templates.space import configuration_key
from warpsmith.http_models import JobStatus
from warpsmith.testing.jobs import scale_job

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 150.0
AT_NIGHT = {mode: pytest.param(mode, marks=pytest.mark.nightly) for mode in ("embedded", "full")}
"""In the gate each end of a worker is tried in one mode, and each mode with one end."""


@dataclass
class Fleet:
    """One worker at a time on one database."""

    folder: Path
    environment: dict[str, str]
    database: Database
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def start(self, trial_s: float = 0.0) -> subprocess.Popen[bytes]:
        settings = {
            "WARPSMITH_DATA_DIR": str(self.folder),
            "WARPSMITH_LEASE_S": "4",
            "WARPSMITH_RENEW_S": "1",
            "WARPSMITH_ALLOW_ROOT": "true",
        }
        extra = {"WARPSMITH_SWEEP_S": "0.5", LEDGER: str(self.ledger), TRIAL_S: str(trial_s)}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.fake_worker"],
                cwd=ROOT,
                env=kept | settings | extra | self.environment,
                stdout=log,
                stderr=log,
            )
        self.workers.append(process)
        return process

    def submit(self, job: Job) -> str:
        with self.database.write() as session:
            return JobRepository(session).create(job)[0].id

    def wait(self, job_id: str, until: Callable[[JobStatus], bool]) -> JobStatus:
        deadline = Deadline(WAIT_S)
        while not deadline.passed():
            with self.database.read() as session:
                status = job_status(session, job_id)
            if until(status):
                return status
            time.sleep(0.1)
        raise AssertionError(f"{status}\n{(self.folder / 'worker.log').read_text()[-4000:]}")

    def stop(self) -> None:
        for process in self.workers:
            process.terminate()
        for process in self.workers:
            process.wait(stretched(30))


@pytest.fixture(params=["embedded", "full"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """SQLite and files, or Postgres and Redis."""
    environment: dict[str, str] = {}
    if request.param == "full":
        url = request.getfixturevalue("migrated_postgres")
        broker = request.getfixturevalue("redis_url")
        environment = {"WARPSMITH_DATABASE_URL": url, "WARPSMITH_BROKER_URL": broker}
    else:
        file = tmp_path / "warpsmith.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), file)
        url = f"sqlite:///{file}"
    database = Database(url)
    made = Fleet(tmp_path, environment, database)
    try:
        yield made
    finally:
        made.stop()
        database.dispose()


def _ended(status: JobStatus) -> bool:
    return status.state.is_terminal


def _children(pid: int) -> list[int]:
    """All descendants of a process."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(entry.parent.name)
            found += [child, *_children(child)]
    return found


def _gone(pids: list[int]) -> bool:
    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "gone"

    return comes_true(lambda: all(state(pid) in ("gone", "Z") for pid in pids), 5)


def _slow_job() -> Job:
    return scale_job(workloads=[{"dimensions": {"n": 64}}], budget={"trials": 100, "seconds": 600})


@pytest.mark.parametrize("fleet", ["full", AT_NIGHT["embedded"]], indirect=True)
def test_sigkill_in_the_middle_of_a_slice_loses_and_repeats_nothing(fleet: Fleet) -> None:
    first = fleet.start(trial_s=0.12)
    job_id = fleet.submit(_slow_job())
    fleet.wait(job_id, lambda s: s.trials_done >= 4)
    family = _children(first.pid)
    assert len(family) >= 4, "two pools with their processes"
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert _gone(family), "children outlived the worker"
    with fleet.database.read() as session:
        (candidate,) = session.scalars(select(CandidateRow.id)).all()
        before = {t.key: t.outcome for t in TrialRepository(session).finished(candidate)}
    assert 4 <= len(before) < 16
    if fleet.environment:
        broker = redis.Redis.from_url(fleet.environment["WARPSMITH_BROKER_URL"])
        broker.flushall()
        broker.close()
    killed_at = fleet.ledger.read_text().count("\n")
    fleet.start(trial_s=0.0)
    status = fleet.wait(job_id, _ended)
    assert status.state is JobState.DONE, status.detail
    with fleet.database.read() as session:
        after = {t.key: t.outcome for t in TrialRepository(session).finished(candidate)}
        tasks = session.scalars(select(TaskRow).order_by(TaskRow.number)).all()
    assert len(after) == 16 == status.trials_done
    assert {k: after[k] for k in before} == before
    assert {t.state for t in tasks} == {TaskState.DONE}
    assert [h["cause"] for t in tasks for h in t.history] == ["worker died"]
    # The verification times the best few and the baseline again; nothing else that was finished is.
    with fleet.database.read() as session:
        best = [t.key for t in TrialRepository(session).measured(job_id)][:3]
    resumed = {line.split()[1] for line in fleet.ledger.read_text().splitlines()[killed_at:]}
    assert resumed & set(before) <= {*best, configuration_key(scale_job().space.defaults)}


@pytest.mark.parametrize("fleet", ["embedded", AT_NIGHT["full"]], indirect=True)
def test_sigterm_stops_in_order_and_the_next_worker_goes_on(fleet: Fleet) -> None:
    first = fleet.start(trial_s=0.08)
    job_id = fleet.submit(_slow_job())
    fleet.wait(job_id, lambda s: s.trials_done >= 2)
    family = _children(first.pid)
    began = time.monotonic()
    first.terminate()
    assert first.wait(stretched(20)) == 0
    assert time.monotonic() - began < stretched(12)
    assert _gone(family)
    with fleet.database.read() as session:
        tasks = session.scalars(select(TaskRow)).all()
        assert not [t for t in tasks if t.state is TaskState.RUNNING]
        assert WorkerRepository(session).seen_lately() == []
    fleet.start(trial_s=0.0)
    status = fleet.wait(job_id, _ended)
    assert status.state is JobState.DONE, status.detail
    with fleet.database.read() as session:
        assert [
            h for t in session.scalars(select(TaskRow)) for h in t.history if h["cause"] != "worker stopped"
        ] == []


@pytest.mark.parametrize("fleet", ["embedded"], indirect=True)
def test_a_cancelled_job_frees_the_device_for_the_next(fleet: Fleet) -> None:
    fleet.start(trial_s=0.08)
    first, second = fleet.submit(_slow_job()), fleet.submit(scale_job(name="next"))
    fleet.wait(first, lambda s: s.trials_done >= 1)
    with fleet.database.write() as session:
        JobRepository(session).cancel(first)
    began = time.monotonic()
    fleet.wait(second, lambda s: s.trials_done >= 1)
    assert time.monotonic() - began < stretched(20)
    with fleet.database.read() as session:
        assert job_status(session, first).state is JobState.CANCELLED
