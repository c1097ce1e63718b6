"""Events in an order that no later commit undercuts."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text, update

from db import migrate
from db.engine import Database
from db.event_cursor import START, Cursor
from db.repositories.events import EventRepository
from db.repositories.jobs import JobRepository
from db.tables import EventRow
from warpsmith.domain.jobs.job import Job
from warpsmith.testing.jobs import scale_job


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    """SQLite has one writer at a time, and no numbers of transactions."""
    migrate.upgrade(postgres_url)
    opened = Database(postgres_url)
    yield opened
    opened.dispose()


def new_job(database: Database, job: Job, tenant: str = "default") -> str:
    with database.write() as session:
        return JobRepository(session).create(job, tenant=tenant)[0].id


def kinds(database: Database, cursor: Cursor = START, **only: str) -> list[str]:
    with database.read() as session:
        return [e.kind for e in EventRepository(session).after(cursor, 100, **only)]


def test_an_event_that_commits_late_is_passed_by_nobody(postgres: Database) -> None:
    job_id = new_job(postgres, scale_job())
    with postgres.write() as slow:
        EventRepository(slow).add(job_id, "first", {})
        slow.flush()
        with postgres.write() as quick:
            EventRepository(quick).add(job_id, "second", {})
        assert kinds(postgres) == ["state"], "the first may still come before the second"
        with postgres.read() as session:
            end = EventRepository(session).end()
    assert kinds(postgres, end) == ["first", "second"]
    with postgres.read() as session:
        page = EventRepository(session).page(job_id)
        assert [e.kind for e in page] == ["state", "first", "second"]
        assert [e.kind for e in EventRepository(session).page(job_id, page[1].id)] == ["second"]


def test_ids_and_transactions_in_opposite_order(postgres: Database) -> None:
    job_id = new_job(postgres, scale_job())
    with postgres.write() as older:
        older.execute(text("SELECT pg_current_xact_id()"))
        with postgres.write() as younger:
            EventRepository(younger).add(job_id, "of the younger", {})
        EventRepository(older).add(job_id, "of the older", {})
    with postgres.read() as session:
        rows = EventRepository(session).page(job_id)
        assert [e.kind for e in rows] == ["state", "of the older", "of the younger"]
        assert rows[1].id > rows[2].id
        seen = [e.kind for row in rows for e in EventRepository(session).page(job_id, row.id, 1)]
    assert seen == ["of the older", "of the younger"]


def test_events_of_a_tenant(database: Database) -> None:
    ours, theirs = new_job(database, scale_job()), new_job(database, scale_job(), "others")
    with database.read() as session:
        found = EventRepository(session).after(START, 100, tenant="others")
        assert [e.job_id for e in found] == [theirs]
    with database.of("default").read() as session:
        assert [e.job_id for e in EventRepository(session).after(START, 100)] == [ours]


def test_events_of_a_restored_dump_come_before_new_ones(postgres: Database) -> None:
    job_id = new_job(postgres, scale_job())
    with postgres.write() as session:
        # As a server would have written it that had counted further.
        session.execute(update(EventRow).values(xact=2**60))
    assert kinds(postgres) == []
    with postgres.write() as session:
        EventRepository(session).put_restored_first()
    with postgres.write() as session:
        EventRepository(session).add(job_id, "new", {})
    assert kinds(postgres) == ["state", "new"]
