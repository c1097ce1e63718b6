"""Connections that died while nobody used them, and queries of sessions that are bound to a tenant."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from db import engine
from db.engine import Database
from db.identifiers import new_id
from db.repositories.jobs import JobRepository
from db.tables import JobRow, WorkloadRow
from db.views.job_status import job_status, job_statuses, poll_statuses
from testbed.rows import add_candidate, add_job
from warpsmith.errors import NotFound
from warpsmith.testing.jobs import scale_job


def kill_connections(url: str) -> None:
    other = Database(url)
    with other.write() as session:
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        )
    other.dispose()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    ready = threading.Barrier(8)

    def open_it(url: str) -> str:
        ready.wait()
        with Database(url).read() as session:
            return str(session.scalar(text("PRAGMA journal_mode")))

    with ThreadPoolExecutor(8) as pool:
        for turn in range(40):
            urls = [f"sqlite:///{tmp_path}/{turn}.db"] * 8
            assert list(pool.map(open_it, urls)) == ["wal"] * 8


def test_an_idle_connection_that_died_is_replaced(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(postgres_url)
    for fresh_s, replaced in ((0.0, True), (3600.0, False)):
        with database.read() as session:
            session.execute(text("SELECT 1"))
        kill_connections(postgres_url)
        monkeypatch.setattr(engine, "FRESH_S", fresh_s)
        if not replaced:
            # In use a moment ago, so nobody asked; whoever meets this tries again, as after any restart.
            with pytest.raises(DBAPIError), database.read() as session:
                session.execute(text("SELECT 1"))
        with database.read() as session:
            assert session.execute(text("SELECT 1")).scalar_one() == 1
    database.dispose()


def test_a_tenant_may_join_its_jobs_with_what_belongs_to_them(database: Database) -> None:
    with database.write() as session:
        mine = JobRepository(session).create(scale_job(), tenant="mine")[0].id
        JobRepository(session).create(scale_job(), tenant="theirs")
    query = select(JobRow.id, WorkloadRow.key).join(WorkloadRow, WorkloadRow.job_id == JobRow.id)
    with database.of("mine").read() as session:
        assert {row.id for row in session.execute(query)} == {mine}


def test_the_status_is_that_of_the_tenants_own_job(database: Database) -> None:
    with database.write() as session:
        jobs = [JobRepository(session).create(scale_job(), tenant=t)[0].id for t in ("mine", "theirs")]
        add_candidate(session, jobs[0]).feasible = 7
        add_candidate(session, jobs[0], 1).feasible = 9
    mine = database.of("mine")
    polled = poll_statuses(mine, jobs)
    assert set(polled) == {jobs[0]}
    status = polled[jobs[0]]
    assert status.feasible == 9
    assert [w.workload for w in status.workloads] == [w.key for w in scale_job().workloads]
    with mine.read() as session:
        with pytest.raises(NotFound):
            job_status(session, jobs[1])
        assert job_statuses(session, jobs) == [status]
    with database.read() as session:
        assert [s.id for s in job_statuses(session, jobs[::-1])] == jobs[::-1]


def test_a_status_within_a_transaction_tells_what_that_has_written(database: Database) -> None:
    with database.write() as session:
        row = add_job(session)
        row.detail = "not committed"
        (status,) = job_statuses(session, [row.id])
    assert status.detail.endswith("not committed"), "beside it, that no worker is alive"


def test_identifiers_of_one_process_ascend() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(set(made)), "within a millisecond too"
    assert {len(i) for i in made} == {26}


def test_a_connection_in_use_is_closed_when_it_is_returned_after_dispose(database: Database) -> None:
    """Else it is deleted while open, at a moment that nobody chooses."""
    with database.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        driver_connection = connection.connection.driver_connection
        database.dispose()
        connection.execute(text("SELECT 1"))
    assert driver_connection is not None
    if database.engine.dialect.name == "postgresql":
        assert driver_connection.closed
    else:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            driver_connection.execute("SELECT 1")
    with database.read() as session:
        assert session.scalar(text("SELECT 1")) == 1
