import os

import pytest

from db.engine import Database
from db.message_names import ADVANCE
from db.repositories.outbox import OutboxRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from testbed.rows import add_job, add_task
from tests.worker.test_execute import SilentNotifier
from warpsmith.domain.state import TaskState
from warpsmith.errors import Unavailable
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE
from worker.supervision.maintenance_loop import MaintenanceLoop
from worker.supervision.pool_plans import plan_pools

OTHER = DEVICE.model_copy(update={"index": 1, "uid": "test-1", "name": "other"})


def test_one_pool_for_each_device_and_one_for_the_rest() -> None:
    plans = plan_pools(("control", "agents", "gpu"), [DEVICE, OTHER], 0)
    assert [(p.queues, p.concurrency, p.device) for p in plans] == [
        (("control", "agents"), 2, None),
        ((f"gpu.{DEVICE.device_class}",), 1, DEVICE),
        ((f"gpu.{OTHER.device_class}",), 1, OTHER),
    ]


def test_a_worker_may_serve_one_device_class_only() -> None:
    (plan,) = plan_pools((f"gpu.{OTHER.device_class}",), [DEVICE, OTHER], 0)
    assert plan.device == OTHER


@pytest.mark.parametrize(("queues", "words"), [(("gpu",), "no device"), (("gpu.cuda-x",), "cuda-x")])
def test_what_cannot_be_served_is_refused(queues: tuple[str, ...], words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        plan_pools(queues, [], 0)


def test_the_maintenance_loop_takes_over_from_a_dead_worker_of_this_machine(database: Database) -> None:
    host = os.uname().nodename
    with database.write() as session:
        workers = WorkerRepository(session)
        workers.register("dead", host, 2**22 + 1, "0", [], [DEVICE], {})
        workers.register("elsewhere", "another-host", 2**22 + 1, "0", [], [DEVICE], {})
        workers.register("living", host, os.getppid(), "0", [], [DEVICE], {})
        workers.register("me", host, os.getpid(), "0", [], [DEVICE], {})
        job_id = add_job(session).id
        tasks = {name: add_task(session, job_id).id for name in ("dead", "elsewhere", "living", "me")}
        for name, task_id in tasks.items():
            TaskRepository(session).claim(task_id, name, 60)
    MaintenanceLoop(Settings(), database, SilentNotifier(), "me").begin(["opencl"])
    with database.read() as session:
        states = {name: TaskRepository(session).get(task_id).state for name, task_id in tasks.items()}
    assert states.pop("dead") is TaskState.QUEUED
    assert set(states.values()) == {TaskState.RUNNING}


def test_the_maintenance_loop_sends_messages_again_for_an_idle_job(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.supervision.maintenance_loop.QUIET_S", -1.0)
    with database.write() as session:
        job_id, outbox = add_job(session).id, OutboxRepository(session)
        outbox.mark_published([message.id for message in outbox.waiting()])
    MaintenanceLoop(Settings(), database, SilentNotifier(), "me").sweep()
    with database.read() as session:
        (message,) = OutboxRepository(session).waiting()
        assert (message.name, message.subject) == (ADVANCE, job_id)
