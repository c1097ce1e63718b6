"""Leases and the trial sink, against a real database, in real time."""

import time
from collections.abc import Iterator

import pytest

from db.engine import Database
from db.queue.lease import Lease
from db.queue.trial_sink import DatabaseSink
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from testbed.deadlines import comes_true, stretched
from testbed.rows import add_candidate, add_job, add_task, rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import LeaseLost
from warpsmith.testing.jobs import DEVICE, scale_job

A: Configuration = {"BLOCK": 32, "PER": 1}
B: Configuration = {"BLOCK": 64, "PER": 1}


class Slice:
    """A claimed task with its candidate."""

    def __init__(self, database: Database, trials: int = 100) -> None:
        self.database = database
        with database.write() as session:
            WorkerRepository(session).register("w", "h", 1, "0", [], [DEVICE], {})
            self.job = add_job(session, scale_job(budget={"trials": trials, "seconds": 60})).id
            self.candidate = add_candidate(session, self.job).id
            self.task = add_task(session, self.job).id
            self.lease_s = stretched(1)
            row = TaskRepository(session).claim(self.task, "w", self.lease_s)
            assert row is not None and row.lease_token is not None
            self.lease = Lease(database, self.task, row.lease_token, "w", self.lease_s, renew_s=0.2)

    def sink(self) -> DatabaseSink:
        return DatabaseSink(self.database, self.lease, self.job, self.candidate)

    def finished(self) -> list[Configuration]:
        with self.database.read() as session:
            return [t.configuration for t in TrialRepository(session).finished(self.candidate)]


@pytest.fixture
def piece(database: Database) -> Iterator[Slice]:
    made = Slice(database)
    with made.lease:
        yield made


def test_a_lease_is_renewed_for_as_long_as_the_work_lasts(piece: Slice) -> None:
    time.sleep(1.3 * piece.lease_s)
    with piece.database.write() as session:
        assert TaskRepository(session).expire(3) == []
    assert piece.lease.alive()


def test_cancelling_is_heard_of(piece: Slice) -> None:
    sink = piece.sink()
    assert sink.alive()
    with piece.database.write() as session:
        JobRepository(session).cancel(piece.job)
    assert comes_true(lambda: not sink.alive(), 30)
    assert piece.lease.lost
    with pytest.raises(LeaseLost):
        sink.close()


def test_a_worker_that_is_to_stop_keeps_its_lease_and_ends(piece: Slice) -> None:
    with piece.database.write() as session:
        WorkerRepository(session).stop("w")
    assert comes_true(lambda: piece.lease.stopping, 30)
    assert not piece.lease.alive() and not piece.lease.lost


def test_trials_are_safe_within_a_second_though_the_next_one_is_slow(piece: Slice) -> None:
    sink = piece.sink()
    sink.proposed([A, B])
    sink.finished(A, rejected("wrong"), 0.1)
    assert comes_true(lambda: piece.finished() == [A], 2)
    sink.finished(B, rejected("wrong"), 0.1)
    sink.close()
    assert piece.finished() == [A, B]


def test_a_zombie_writes_nothing(piece: Slice) -> None:
    sink = piece.sink()
    sink.proposed([A])
    with piece.database.write() as session:
        TaskRepository(session).expire_of("w", 3)
        assert TaskRepository(session).claim(piece.task, "other", 10) is not None
    sink.finished(A, rejected("late"), 0.1)
    with pytest.raises(LeaseLost):
        sink.close()
    assert piece.finished() == []


def test_the_sink_ends_a_slice_when_the_trials_of_the_job_are_spent(database: Database) -> None:
    piece = Slice(database, trials=1)
    with piece.lease:
        sink = piece.sink()
        sink.proposed([A])
        sink.finished(A, rejected("wrong"), 0.1)
        assert comes_true(lambda: not sink.alive(), 30)
        sink.close()
