"""`DatabaseSink` on SQLite and on Postgres passes the suite of its port."""

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import update

from db.engine import Database
from db.identifiers import new_id
from db.queue.lease import Lease
from db.queue.trial_sink import DatabaseSink
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import TaskRow
from testbed.rows import add_candidate, add_job, add_task
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import LeaseLost
from warpsmith.testing.jobs import DEVICE
from warpsmith.testing.sink_contract import SinkContract


class Slice:
    """A claimed task, its candidate and the sink of its trials."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.write() as session:
            WorkerRepository(session).register("w", "h", 1, "0", [], [DEVICE], {})
            self.job = add_job(session).id
            self.candidate = add_candidate(session, self.job).id
            self.task = add_task(session, self.job).id
            row = TaskRepository(session).claim(self.task, "w", 1.0)
            assert row is not None and row.lease_token is not None
            self.lease = Lease(database, self.task, row.lease_token, "w", lease_s=1.0, renew_s=0.2)

    def kept(self) -> Sequence[Configuration]:
        """See `SinkCase.kept`."""
        with self.database.read() as session:
            return [trial.configuration for trial in TrialRepository(session).finished(self.candidate)]

    def cancel(self) -> None:
        """See `SinkCase.cancel`."""
        with self.database.write() as session:
            JobRepository(session).cancel(self.job)

    def lose(self) -> None:
        """See `SinkCase.lose`."""
        with self.database.write() as session:
            taken = update(TaskRow).where(TaskRow.id == self.task)
            session.execute(taken.values(lease_token=new_id()))


class SliceCase(Slice):
    """A `Slice` whose lease is being renewed."""

    sink: DatabaseSink


@pytest.fixture
def case(database: Database) -> Iterator[SliceCase]:
    made = SliceCase(database)
    with made.lease:
        made.sink = DatabaseSink(database, made.lease, made.job, made.candidate)
        yield made
        try:
            made.sink.close()
        except LeaseLost:
            assert made.lease.lost


class TestDatabaseSink(SinkContract):
    """`DatabaseSink`."""
