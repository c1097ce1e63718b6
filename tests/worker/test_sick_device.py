"""A device that fails a kernel of our own gets nothing more, and its tasks go to others."""

import pytest

from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.result_views import worker_list
from testbed.deadlines import stretched
from tests.worker.test_execute import context, handle_all, submit
from warpsmith.domain.state import TaskKind, TaskState
from warpsmith.errors import DeviceSick
from warpsmith.testing.jobs import DEVICE, scale_job
from worker import task_runner
from worker.device.process_context import Context
from worker.supervision.pool_plans import PoolPlan
from worker.supervision.supervisor import PoolStarter, Supervisor
from worker.works.baseline import baseline

__all__ = ["context"]


def test_a_sick_device_is_put_aside_and_its_task_waits_for_another(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sick(*_: object) -> object:
        raise DeviceSick("our own kernel gives a wrong result")

    monkeypatch.setitem(task_runner.WORK, TaskKind.BASELINE, sick)
    job_id = submit(context.database, scale_job(budget={"trials": 5, "seconds": 600}))
    handle_all(context)
    with context.database.read() as session:
        workers = WorkerRepository(session)
        assert workers.has_put_aside("w", DEVICE)
        assert workers.of_backend(DEVICE.backend.value) == []
        (shown,) = worker_list(session).items
        assert shown.devices == ()
        assert "wrong result" in str(shown.unavailable[DEVICE.uid])
        (task,) = [t for t in TaskRepository(session).of_job(job_id) if t.kind is TaskKind.BASELINE]
        assert task.state is TaskState.QUEUED
        assert "device: our own kernel gives a wrong result" in str(task.error)
    monkeypatch.setitem(task_runner.WORK, TaskKind.BASELINE, baseline)
    assert not task_runner.run_task(context, task.id), "the sick worker took it again"
    with context.database.write() as session:
        WorkerRepository(session).register("v", "host", 2, "0", ["control"], [DEVICE], {})
    context.worker_id = "v"
    assert task_runner.run_task(context, task.id)


def test_a_retired_pool_is_not_started_again() -> None:
    plan = PoolPlan("device-0", ("gpu.x",), 1, DEVICE)
    starter = PoolStarter("tests.worker.idle_pool")
    pools = Supervisor([plan], "w", starter)
    try:
        pools.keep_running()
        (process,) = pools._running.values()
        pools.retire(plan)
        assert process.wait(stretched(10)) is not None
        pools.keep_running()
        assert not pools._running and pools.plans == ()
    finally:
        pools.stop(1, lambda: True)
        starter.close()
