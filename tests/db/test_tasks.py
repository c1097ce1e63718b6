from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from db.engine import Database
from db.message_names import ADVANCE, RUN_TASK
from db.repositories.tasks import LOST_FACTOR, TaskRepository
from db.tables import OutboxRow, TaskRow
from testbed.rows import add_job, add_task
from warpsmith.domain.state import TaskState
from warpsmith.errors import LeaseLost
from warpsmith.tuning.tasks import SliceResult


def _task(database: Database) -> str:
    with database.write() as session:
        return add_task(session, add_job(session).id).id


def _claim(database: Database, task_id: str, worker: str = "w", lease_s: float = 10) -> TaskRow | None:
    with database.write() as session:
        return TaskRepository(session).claim(task_id, worker, lease_s)


def _token(row: TaskRow | None) -> str:
    assert row is not None and row.lease_token is not None
    return row.lease_token


def _messages(database: Database, subject: str) -> list[str]:
    with database.read() as session:
        query = select(OutboxRow.name).where(OutboxRow.subject == subject).order_by(OutboxRow.id)
        return list(session.scalars(query))


def test_of_many_claims_one_wins(database: Database) -> None:
    task_id = _task(database)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda i: _claim(database, task_id, f"w{i}"), range(16)))
    won = [c for c in claims if c is not None]
    assert len(won) == 1
    assert (won[0].attempt, won[0].state) == (1, TaskState.RUNNING)


def test_finish_is_fenced_and_final(database: Database) -> None:
    task_id = _task(database)
    token = _token(_claim(database, task_id))
    with database.write() as session:
        TaskRepository(session).finish(task_id, token, SliceResult(trials=3))
    with pytest.raises(LeaseLost), database.write() as session:
        TaskRepository(session).finish(task_id, token, SliceResult(trials=4))
    assert _claim(database, task_id) is None
    with database.read() as session:
        row = TaskRepository(session).get(task_id)
        assert (row.state, row.result) == (TaskState.DONE, SliceResult(trials=3))


def test_an_expired_lease_returns_and_the_late_worker_is_fenced_off(database: Database) -> None:
    task_id = _task(database)
    late = _token(_claim(database, task_id, "slow", lease_s=-1))
    with database.write() as session:
        assert [t.id for t in TaskRepository(session).expire(max_attempts=3)] == [task_id]
    row = _claim(database, task_id, "quick")
    assert row is not None and row.attempt == 2
    assert [(h["cause"], h["worker"]) for h in row.history] == [("lease expired", "slow")]
    for write in ("renew", "finish", "fail"):
        with pytest.raises(LeaseLost), database.write() as session:
            repository = TaskRepository(session)
            if write == "renew":
                repository.renew(task_id, late, 10)
            elif write == "finish":
                repository.finish(task_id, late, SliceResult())
            else:
                repository.fail(task_id, late, "x", "y", 3)
    assert _messages(database, task_id) == [RUN_TASK, RUN_TASK]


def test_a_renewed_lease_does_not_expire(database: Database) -> None:
    task_id = _task(database)
    token = _token(_claim(database, task_id, lease_s=-1))
    with database.write() as session:
        repository = TaskRepository(session)
        repository.renew(task_id, token, 30)
        assert repository.expire(3) == []


def test_lost_too_often_and_it_is_dead_with_its_history(database: Database) -> None:
    task_id = _task(database)
    for attempt in range(2 * LOST_FACTOR):
        assert _claim(database, task_id, f"w{attempt}", lease_s=-1) is not None
        with database.write() as session:
            TaskRepository(session).expire(max_attempts=2)
    with database.read() as session:
        row = TaskRepository(session).get(task_id)
    assert row.state is TaskState.DEAD
    assert [h["attempt"] for h in row.history] == list(range(1, 2 * LOST_FACTOR + 1))
    assert row.error.startswith("lease expired")
    assert _claim(database, task_id) is None
    assert ADVANCE in _messages(database, row.job_id)


def test_losses_do_not_count_as_failures(database: Database) -> None:
    task_id = _task(database)
    for cause in ("timeout", "lost", "lost", "timeout", "lost", "timeout"):
        row = _claim(database, task_id, lease_s=-1)
        assert row is not None
        with database.write() as session:
            repository = TaskRepository(session)
            if cause == "lost":
                repository.expire(max_attempts=3)
            else:
                repository.fail(task_id, _token(row), cause, "", 3)
    with database.read() as session:
        assert TaskRepository(session).get(task_id).state is TaskState.DEAD
    assert _claim(database, task_id) is None


@pytest.mark.parametrize(("final", "state"), [(False, TaskState.QUEUED), (True, TaskState.DEAD)])
def test_a_failed_attempt(database: Database, final: bool, state: TaskState) -> None:
    task_id = _task(database)
    token = _token(_claim(database, task_id))
    with database.write() as session:
        assert TaskRepository(session).fail(task_id, token, "timeout", "20 s", 3, final=final) is state
    assert (_claim(database, task_id) is not None) is (state is TaskState.QUEUED)


def test_a_task_that_is_given_back_has_lost_no_attempt(database: Database) -> None:
    task_id, of_another = _task(database), _task(database)
    late = _token(_claim(database, task_id))
    _claim(database, of_another, "another worker")
    with database.write() as session:
        assert TaskRepository(session).give_back("w") == 1
    assert _claim(database, of_another) is None
    row = _claim(database, task_id)
    assert row is not None and row.attempt == 1
    with database.write() as session:
        assert TaskRepository(session).give_back("w", late) == 0


def test_sweepers_share_the_work(database: Database) -> None:
    ids = [_task(database) for _ in range(12)]
    for task_id in ids:
        _claim(database, task_id, lease_s=-1)

    def sweep(_: int) -> list[str]:
        with database.write() as session:
            return [t.id for t in TaskRepository(session).expire(3, limit=4)]

    with ThreadPoolExecutor(4) as pool:
        found = [task_id for part in pool.map(sweep, range(8)) for task_id in part]
    assert sorted(found) == sorted(ids), "every expired task once"


def test_quiet_tasks_are_notified_again_oldest_first(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
        ids = [add_task(session, job_id).id for _ in range(5)]
    with database.write() as session:
        repository = TaskRepository(session)
        assert repository.notify_quiet(60) == []
        notified = repository.notify_quiet(-1, per_queue=2)
    assert sorted(notified) == sorted(ids)[:2]
    assert _messages(database, notified[0]) == [RUN_TASK, RUN_TASK]


def test_numbers_count_within_a_job(database: Database) -> None:
    with database.write() as session:
        first, second = add_job(session).id, add_job(session).id
        assert [add_task(session, j).number for j in (first, second, first)] == [0, 0, 1]
