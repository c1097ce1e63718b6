import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, text

from db.engine import Database
from db.message_names import ADVANCE
from db.repositories.events import EventRepository
from db.repositories.jobs import JobRepository, KeyReused
from db.repositories.tasks import TaskRepository
from db.tables import JobRow, OutboxRow
from db.views.job_status import job_status, poll_statuses
from db.views.result_views import job_result
from testbed.rows import add_job, add_task, workload_rows
from warpsmith.domain.reason import Reason, ReasonCode
from warpsmith.domain.state import JOB_MOVES, JobState, TaskState
from warpsmith.errors import LeaseLost, NotFound
from warpsmith.testing.jobs import scale_job


def test_a_job_comes_back_as_it_was_sent(database: Database) -> None:
    job = scale_job(name="mine")
    with database.write() as session:
        row, created = JobRepository(session).create(job)
    assert created
    with database.read() as session:
        stored = JobRepository(session).get(row.id, with_spec=True)
        assert stored.spec == job
        assert stored.state is JobState.QUEUED
        assert stored.created_at.tzinfo is not None
        messages = session.scalars(select(OutboxRow)).all()
        assert [(b.name, b.subject) for b in messages] == [(ADVANCE, row.id)]
        keys = [w.key for w in workload_rows(session, row.id)]
        assert keys == [w.key for w in job.workloads]


def test_a_job_of_another_version_is_read_without_fields_that_are_not_known(database: Database) -> None:
    with database.write() as session:
        row, _ = JobRepository(session).create(scale_job())
        spec = row.spec.model_dump(mode="json")
        written = json.dumps(spec | {"agents": spec["agents"] | {"guides": True}, "hurry": 3})
        session.execute(text("UPDATE job SET spec = :spec"), {"spec": written})
    with database.read() as session:
        assert JobRepository(session).get(row.id, with_spec=True).spec == scale_job()


def test_same_key_same_job_is_stored_once(database: Database) -> None:
    with database.write() as session:
        first, created = JobRepository(session).create(scale_job(), "key")
    assert created
    with database.write() as session:
        second, created = JobRepository(session).create(scale_job(), "key")
    assert (second.id, created) == (first.id, False)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(JobRow)) == 1
        assert session.scalar(select(func.count()).select_from(OutboxRow)) == 1


def test_same_key_other_job_is_refused(database: Database) -> None:
    with database.write() as session:
        JobRepository(session).create(scale_job(), "key")
    with pytest.raises(KeyReused, match="Idempotency-Key"), database.write() as session:
        JobRepository(session).create(scale_job(name="other"), "key")


def test_a_key_is_known_to_its_tenant_alone(database: Database) -> None:
    with database.write() as session:
        tenant = JobRepository(session).create(scale_job(), "key")[0].tenant
    with database.read() as session:
        jobs = JobRepository(session)
        assert [jobs.stored(name, "key") for name in (tenant, "another")] == [True, False]


def test_many_clients_with_one_key_make_one_job(database: Database) -> None:
    def create(_: int) -> str:
        with database.write() as session:
            return JobRepository(session).create(scale_job(), "key")[0].id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(create, range(24)))
    assert len(ids) == 1


def test_pages_are_newest_first_and_complete(database: Database) -> None:
    with database.write() as session:
        ids = [add_job(session).id for _ in range(5)]
    ids.sort(reverse=True)
    with database.read() as session:
        repository = JobRepository(session)
        first = [row.id for row in repository.page(limit=3)]
        second = [row.id for row in repository.page(after=first[-1], limit=3)]
    assert first + second == ids


def test_why_a_job_ended_is_in_its_status_and_its_result(database: Database) -> None:
    reason = Reason(code=ReasonCode.BUDGET_SPENT, sentence="the baseline took it all", search="")
    with database.write() as session:
        job_id = add_job(session).id
        assert job_status(session, job_id).reason is None
        assert JobRepository(session).move(job_id, JobState.QUEUED, JobState.FAILED, "spent", reason)
    with database.read() as session:
        assert job_status(session, job_id).reason == reason
        result = job_result(session, job_id)
        assert result is not None
        assert (result.reason, result.baseline) == (reason, ())
    assert poll_statuses(database, [job_id])[job_id].reason == reason


@pytest.mark.parametrize("target", list(JobState))
def test_moves_are_those_of_the_table(database: Database, target: JobState) -> None:
    with database.write() as session:
        job_id = add_job(session).id
        repository = JobRepository(session)
        if target not in JOB_MOVES[JobState.QUEUED]:
            with pytest.raises(ValueError, match="no move"):
                repository.move(job_id, JobState.QUEUED, target)
            return
        assert repository.move(job_id, JobState.QUEUED, target, "why")
        assert not repository.move(job_id, JobState.QUEUED, target), "it is not queued any more"
        row = repository.get(job_id)
        assert (row.state, row.detail) == (target, "why")
        assert (row.finished_at is not None) is target.is_terminal


def test_terminal_states_never_change(database: Database) -> None:
    with database.write() as session:
        repository = JobRepository(session)
        job_id = add_job(session).id
        assert repository.move(job_id, JobState.QUEUED, JobState.FAILED, "no device")
        assert repository.cancel(job_id).state is JobState.FAILED
        assert not repository.set_detail(job_id, "something else")
        assert not repository.move(job_id, JobState.BASELINE, JobState.DONE)
        assert repository.get(job_id).detail == "no device"


def test_cancelling_takes_the_lease_from_whoever_works(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
        task_id, waiting = add_task(session, job_id).id, add_task(session, job_id).id
        of_another = add_task(session, add_job(session).id).id
        claimed = TaskRepository(session).claim(task_id, "w", 10)
        assert claimed is not None and claimed.lease_token is not None
        token = claimed.lease_token
    with database.write() as session:
        assert JobRepository(session).cancel(job_id).state is JobState.CANCELLED
    with database.write() as session:
        tasks = TaskRepository(session)
        assert {t.state for t in tasks.of_job(job_id)} == {TaskState.CANCELLED}
        assert tasks.claim(waiting, "w", 10) is None
        assert tasks.claim(of_another, "w", 10) is not None
        with pytest.raises(LeaseLost):
            tasks.renew(task_id, token, 10)


def test_events_tell_the_story(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
        JobRepository(session).move(job_id, JobState.QUEUED, JobState.BASELINE, "measuring")
    with database.read() as session:
        events = EventRepository(session).page(job_id)
        assert [e.data["state"] for e in events] == ["queued", "baseline"]
        assert [e.id for e in EventRepository(session).page(job_id, after_id=events[0].id)] == [events[1].id]


def test_no_such_job(database: Database) -> None:
    with database.read() as session, pytest.raises(NotFound):
        JobRepository(session).get("nothing")


def test_idle_jobs_are_notified_once_a_period(database: Database) -> None:
    with database.write() as session:
        job_id, busy = add_job(session).id, add_job(session).id
        add_task(session, busy)
    with database.write() as session:
        repository = JobRepository(session)
        assert repository.notify_idle(60) == [], "too young"
        assert repository.notify_idle(-1) == [job_id]
        assert repository.notify_idle(60) == []


def test_jobs_that_wait_for_a_back_end_are_notified(database: Database) -> None:
    with database.write() as session:
        job_id, pinned = add_job(session).id, add_job(session).id
        repository = JobRepository(session)
        assert repository.pin(pinned, "opencl-x")
        assert not repository.pin(pinned, "opencl-y"), "a job is pinned once"
        assert repository.notify_unpinned(["cuda"]) == []
        assert repository.notify_unpinned(["cuda", "opencl"]) == [job_id]
