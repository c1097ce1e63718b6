"""Who is served next: tenants take turns, priorities count within a tenant, jobs go slice by slice."""

from collections import Counter
from datetime import timedelta

import pytest

from db.engine import Database, utc_now
from db.message_names import AGENT_QUEUE, device_queue
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.tables import TaskRow
from warpsmith.domain.state import TaskKind
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import SliceResult

QUEUE = device_queue(DEVICE.device_class)


def add(database: Database, tenant: str, priority: int = 0) -> str:
    """A job with one task that waits."""
    with database.write() as session:
        job = JobRepository(session).create(scale_job(), tenant=tenant, priority=priority)[0].id
        TaskRepository(session).enqueue(job, TaskKind.SLICE, QUEUE, None)
    return job


def serve(database: Database, again: bool = False) -> tuple[str, str] | None:
    """Claim what is next and finish it; tenant and job. With `again` the job wants another slice."""
    with database.write() as session:
        tasks = TaskRepository(session)
        row = tasks.claim_next(QUEUE, "w", 60)
        if not isinstance(row, TaskRow):
            return None
        assert row.lease_token is not None
        tasks.finish(row.id, row.lease_token, SliceResult())
        if again:
            tasks.enqueue(row.job_id, TaskKind.SLICE, QUEUE, None)
        return row.tenant, row.job_id


def ask_an_agent(database: Database, job: str, ago_s: float = 0.0) -> None:
    """The job waits for an agent."""
    with database.write() as session:
        JobRepository(session).pin(job, DEVICE.device_class)
        row = TaskRepository(session).enqueue(job, TaskKind.AGENT_STEP, AGENT_QUEUE, None)
        row.created_at = utc_now() - timedelta(seconds=ago_s)


def offered(database: Database, patience_s: float) -> str:
    """What a device gets: a job's id, `soon`, or nothing."""
    with database.write() as session:
        row = TaskRepository(session).claim_next(QUEUE, "w", 60, patience_s)
        session.flush()
        found = row.job_id if isinstance(row, TaskRow) else "soon" if row else ""
        session.rollback()
    return found


def test_a_device_waits_a_moment_for_a_job_that_has_begun(database: Database) -> None:
    begun = add(database, "t")
    assert serve(database) == ("t", begun)
    new = add(database, "t")
    assert offered(database, 0.5) == new, "nobody is asked anything"
    ask_an_agent(database, begun)
    assert offered(database, 30) == "soon"
    assert offered(database, 0) == new, "patience has an end"
    other = add(database, "other")
    assert offered(database, 30) == other, "another tenant's turn waits for nobody"


def test_a_device_waits_for_the_decision_after_a_task(database: Database) -> None:
    begun, new = add(database, "t"), add(database, "t")
    with database.write() as session:
        JobRepository(session).pin(begun, DEVICE.device_class)
    assert serve(database) == ("t", begun)
    assert offered(database, 30) == "soon", "its next task is about to be there"
    with database.write() as session:
        TaskRepository(session).enqueue(begun, TaskKind.SLICE, QUEUE, None)
    assert offered(database, 30) == begun
    with database.write() as session:
        JobRepository(session).cancel(begun)
    assert offered(database, 30) == new, "nothing follows in a job that has ended"


@pytest.mark.parametrize("why", ["asked long ago", "deferred"])
def test_a_device_does_not_wait_for_a_model(database: Database, why: str) -> None:
    begun = add(database, "t")
    assert serve(database) == ("t", begun)
    new = add(database, "t")
    ask_an_agent(database, begun, ago_s=60 if why == "asked long ago" else 0)
    if why == "deferred":
        with database.write() as session:
            row = TaskRepository(session).claim_next(AGENT_QUEUE, "w", 60)
            assert isinstance(row, TaskRow) and row.lease_token is not None
            TaskRepository(session).defer(row.id, row.lease_token, utc_now() + timedelta(hours=1))
    assert offered(database, 30) == new


def serve_many(database: Database, count: int, again: bool = False) -> list[tuple[str, str]]:
    """So many in a row."""
    found = [serve(database, again) for _ in range(count)]
    return [f for f in found if f is not None]


def test_tenants_take_turns_however_much_one_of_them_submits(database: Database) -> None:
    for _ in range(20):
        add(database, "many")
    for tenant in ("one", "two"):
        add(database, tenant)
    assert {tenant for tenant, _ in serve_many(database, 3)} == {"many", "one", "two"}
    assert Counter(tenant for tenant, _ in serve_many(database, 19)) == {"many": 19}
    assert serve(database) is None


def test_two_tenants_share_a_device_equally_while_both_want_it(database: Database) -> None:
    for _ in range(5):
        add(database, "five jobs")
    add(database, "one job")
    served = Counter(tenant for tenant, _ in serve_many(database, 20, again=True))
    assert served == {"five jobs": 10, "one job": 10}


def test_jobs_that_have_begun_go_slice_by_slice(database: Database) -> None:
    jobs = [add(database, "t") for _ in range(4)]
    serve_many(database, 4)
    with database.write() as session:
        for job in jobs:
            TaskRepository(session).enqueue(job, TaskKind.SLICE, QUEUE, None)
    served = [job for _, job in serve_many(database, 12, again=True)]
    assert served == jobs * 3


def test_a_higher_priority_goes_first_among_the_jobs_of_its_tenant_only(database: Database) -> None:
    low, high, normal = add(database, "t", -1), add(database, "t", 5), add(database, "t")
    other = add(database, "other", -10)
    served = [job for _, job in serve_many(database, 4)]
    assert [job for job in served if job != other] == [high, normal, low]
    assert served.index(other) <= 1, "no priority takes another tenant's turn"


def test_jobs_that_have_begun_go_on_before_others_begin(database: Database) -> None:
    first = add(database, "t")
    for _ in range(20):
        add(database, "t")
    assert [job for _, job in serve_many(database, 5, again=True)] == [first] * 5


def test_what_was_lost_on_its_way_goes_before_the_rest_of_its_tenant(database: Database) -> None:
    lost, waiting = add(database, "t"), add(database, "t", 9)
    with database.write() as session:
        tasks = TaskRepository(session)
        (task,) = tasks.of_job(lost)
        assert tasks.claim(task.id, "w", -1) is not None
        tasks.expire(3)
    served = [job for _, job in serve_many(database, 2)]
    assert served == [lost, waiting]
