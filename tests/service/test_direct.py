"""The fleet without messages: Redis never comes up, and the jobs end all the same."""

import time
from pathlib import Path

import pytest

from db.engine import Database
from db.queue.broker import Notifier
from db.repositories.fair_turns import Yield
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from testbed.deadlines import Deadline
from testbed.recordings import replay_job, write_recording
from testbed.rows import add_job, add_task
from testbed.servers import free_port
from tests.worker.test_execute import SilentNotifier
from warpsmith.backends import replay
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.settings import Settings
from worker import brokerless
from worker.device.device_setup import open_setup
from worker.device.process_context import Context
from worker.supervision.pool_plans import PoolPlan
from worker.supervision.supervisor import PoolStarter, Supervisor
from worker.supervision.watchdog import Watchdog


@pytest.fixture
def silent(tmp_path: Path, migrated_postgres: str) -> Settings:
    """A Postgres, and the address of a Redis that is not there."""
    return Settings(
        _env_file=None,
        database_url=migrated_postgres,
        broker_url=f"redis://127.0.0.1:{free_port()}/0",
        data_dir=tmp_path,
        replay_dir=write_recording(tmp_path / "recordings"),
    )


def test_jobs_end_without_any_message(silent: Settings) -> None:
    assert silent.replay_dir is not None
    (device,) = replay.probe(silent.replay_dir)
    database, notifier = Database(silent.sqlalchemy_url), Notifier(silent)
    made = Context(silent, database, notifier, "w1", open_setup(silent, device))
    try:
        assert not notifier.answers()
        with database.write() as session:
            WorkerRepository(session).register("w1", "host", 1, "0", ("gpu",), (device,), {})
            budget = {"trials": 5, "seconds": 600}
            job = Job.model_validate(replay_job(budget=budget))
            ids = [JobRepository(session).create(job)[0].id for _ in range(2)]
        queues = ("control", "agents", f"gpu.{device.device_class}")
        deadline = Deadline(60)
        states: set[JobState] = set()
        while states != {JobState.DONE} and not deadline.passed():
            if not brokerless.step(made, queues):
                time.sleep(0.1)
            with database.read() as session:
                states = {JobRepository(session).get(job_id).state for job_id in ids}
        assert states == {JobState.DONE}
        with database.read() as session:
            assert {JobRepository(session).get(job_id).trials_done for job_id in ids} == {5}
    finally:
        notifier.close()
        database.dispose()


class NoPools(PoolStarter):
    """Has no process to fork pools from."""

    def __init__(self) -> None:
        """Nothing is started."""


class Pools(Supervisor):
    """Starts nothing, and notes what it should have."""

    def __init__(self) -> None:
        super().__init__((PoolPlan("device0", ("gpu.x",), 1),), "w", NoPools())
        self.standing_in = False
        self.restarted: list[str] = []

    def stand_in(self, wanted: bool) -> None:
        self.standing_in = wanted

    def restart(self, plan: PoolPlan) -> None:
        self.restarted.append(plan.name)


class Answers(SilentNotifier):
    """Answers while it is there."""

    there = True

    def answers(self) -> bool:
        return self.there


def test_stand_ins_come_with_silence_and_go_with_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    pools, notifier = Pools(), Answers()
    dog = Watchdog(pools, notifier, database, "w")
    seen = []
    for second in range(40):
        now[0] = float(second)
        notifier.there = not 10 <= second < 20
        dog.tick()
        seen.append(pools.standing_in)
    database.dispose()
    assert seen.index(True) == 13, "after three seconds of silence"
    assert seen[13:].index(False) == 25 - 13, "after five seconds of answers"


def test_a_pool_that_does_not_hear_is_started_again(migrated_postgres: str) -> None:
    database = Database(migrated_postgres)
    try:
        with database.write() as session:
            job = add_job(session)
            first, second = add_task(session, job.id), add_task(session, job.id)
        time.sleep(0.3)

        def deaf(quiet_s: float) -> bool:
            with database.read() as session:
                return TaskRepository(session).deaf("w", (first.queue,), quiet_s)

        assert deaf(0.2)
        assert not deaf(60), "it has not waited for long"
        with database.write() as session:
            claimed = TaskRepository(session).claim(first.id, "w", 60)
        assert claimed is not None
        assert not deaf(0.2), "it works"
        with database.write() as session:
            TaskRepository(session).fail(first.id, claimed.lease_token or "", "x", "", 1)
            TaskRepository(session).claim(second.id, "other", 60)
        time.sleep(0.3)
        assert not deaf(0.2), "nothing waits"
    finally:
        database.dispose()


def test_lost_work_comes_first(migrated_postgres: str) -> None:
    database = Database(migrated_postgres)
    try:
        with database.write() as session:
            ids = [add_task(session, add_job(session).id).id for _ in range(3)]
            tasks = TaskRepository(session)
            tasks.claim(ids[2], "dead", -1)
            tasks.expire(3)
        order: list[str | None] = []
        for _ in range(4):
            with database.write() as session:
                row = TaskRepository(session).claim_next(queue_of(database, ids[0]), "w", 60)
                assert not isinstance(row, Yield)
                order.append(None if row is None else row.id)
        assert order == [ids[2], ids[0], ids[1], None]
    finally:
        database.dispose()


def queue_of(database: Database, task_id: str) -> str:
    with database.read() as session:
        queue = TaskRepository(session).queue_of(task_id)
    assert queue is not None
    return queue
