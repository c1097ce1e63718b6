"""A whole job in this process: real database, real decisions, fake device, messages by hand."""

from pathlib import Path

import optuna
import pytest
from sqlalchemy import select, update

import worker.works.agent_step
from db.engine import Database
from db.message_names import ADVANCE
from db.queue.broker import Notifier
from db.queue.lease import Lease
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.repositories.workers import WorkerRepository
from db.tables import AgentStepRow, TaskRow
from db.views.job_status import job_status
from db.views.result_views import (
    candidate_list,
    job_page,
    job_result,
    trial_page,
    worker_list,
)
from testbed.rows import measured
from tests.worker.fake_pool import as_it_is
from tests.worker.setup_fakes import FakeSetup
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from worker import task_runner
from worker.advance import advance
from worker.device.process_context import Context
from worker.works.outcome import Done


class SilentNotifier(Notifier):
    """The broker is away; the test reads the outbox itself."""

    def __init__(self) -> None: ...

    def notify(self, name: str, queue: str, subject: str) -> bool:
        return False


@pytest.fixture
def context(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(worker.works.agent_step, "run_step", as_it_is)
    with database.write() as session:
        WorkerRepository(session).register("w", "host", 1, "0", ["control"], [DEVICE], {"cuda": "no driver"})
    url = database.engine.url.render_as_string(hide_password=False)
    settings = Settings(data_dir=tmp_path, database_url=url, lease_s=5, renew_s=1)
    return Context(settings, database, SilentNotifier(), "w", FakeSetup())


def submit(database: Database, job: Job) -> str:
    with database.write() as session:
        return JobRepository(session).create(job)[0].id


def handle_all(context: Context, limit: int = 100) -> None:
    """Handle every message until none is left; the worker stays alive however long that takes."""
    for _ in range(limit):
        with context.database.write() as session:
            messages = OutboxRepository(session).waiting()
            OutboxRepository(session).mark_published([b.id for b in messages])
        if not messages:
            return
        for message in messages:
            with context.database.write() as session:
                WorkerRepository(session).heartbeat(context.worker_id)
            if message.name == ADVANCE:
                advance(context.database, message.subject)
            else:
                task_runner.run_task(context, message.subject)
    raise AssertionError("the messages never end")


def test_a_job_from_end_to_end(context: Context) -> None:
    job_id = submit(context.database, scale_job(budget={"trials": 100, "seconds": 60}))
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
        assert status.state is JobState.DONE, status.detail
        assert (status.trials_done, status.trials_rejected, status.feasible) == (16, 4, 16)
        assert (status.round, status.seconds_left) == (1, None)
        assert status.tokens_used > 0 and status.tokens_used % 7 == 0, "each step costs seven"
        assert status.started_at is not None and status.finished_at is not None
        expected = 100.0 / (100.0 * 0.5 / 4**0.25)
        result = job_result(session, job_id)
        assert result is not None
        assert result.speedup == pytest.approx(expected, rel=0.02)
        assert status.best_speedup == result.speedup
        shown_us = {w.workload: (w.baseline_us, w.best_us) for w in status.workloads}
        assert shown_us == {c.workload: (c.baseline_us, c.best_us) for c in result.comparisons}
        for entry in result.dispatch:
            assert entry.configuration == {"BLOCK": 256, "PER": 4}
            assert entry.source is not None and "#define BLOCK 256" in entry.source
            assert entry.block == (256, 1, 1)
        assert {r.stage for r in result.rejections} == {"correctness"}
        assert sum(r.count for r in result.rejections) == 4
        assert result.trials_per_second > 0
        assert len(candidate_list(session, job_id).items) == 1
        page = trial_page(session, job_id, limit=10)
        rest = trial_page(session, job_id, after=page.next, limit=10)
        assert len(page.items) + len(rest.items) == 16 and rest.next is None
        assert job_page(session).items == (status,)
        (shown,) = worker_list(session).items
        assert shown.alive and shown.devices == (DEVICE.device_class,)
        assert session.scalars(select(AgentStepRow.role)).all()[-1] == "templater"


def test_the_optuna_study_holds_what_our_rows_hold(context: Context) -> None:
    job_id = submit(context.database, scale_job(budget={"trials": 10, "seconds": 60}))
    handle_all(context)
    storage = optuna.storages.RDBStorage(str(context.settings.sqlalchemy_url))
    (name,) = optuna.get_all_study_names(storage)
    study = optuna.load_study(study_name=name, storage=storage)
    theirs = {(t.user_attrs["warpsmith_number"], tuple(t.params.values()), t.value) for t in study.trials}
    storage.engine.dispose()
    with context.database.read() as session:
        rows = TrialRepository(session).page(job_id)
        ours = {(t.number, tuple(t.configuration.values()), t.objective) for t in rows if t.outcome}
    assert len(ours) == 10
    assert theirs == ours


def test_without_a_worker_for_its_back_end_a_job_waits_and_says_so(context: Context) -> None:
    source = scale_job().model_dump(mode="json", exclude_unset=True)
    source["kernel"]["backend"] = "cuda"
    job_id = submit(context.database, Job.model_validate(source))
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
        assert status.state is JobState.QUEUED
        assert "cuda" in status.detail
        assert job_result(session, job_id) is None


def test_a_cancelled_job_stays_cancelled_whatever_comes_later(context: Context) -> None:
    job_id = submit(context.database, scale_job())
    advance(context.database, job_id)
    with context.database.write() as session:
        JobRepository(session).cancel(job_id)
    handle_all(context)
    with context.database.read() as session:
        assert job_status(session, job_id).state is JobState.CANCELLED
        assert [t.state for t in TaskRepository(session).of_job(job_id)] == [TaskState.CANCELLED]


def test_advancing_twice_starts_nothing_twice(context: Context) -> None:
    job_id = submit(context.database, scale_job())
    assert advance(context.database, job_id) > 0
    assert advance(context.database, job_id) == 0
    with context.database.read() as session:
        assert [t.kind for t in TaskRepository(session).of_job(job_id)] == [TaskKind.BASELINE]


@pytest.mark.parametrize(
    ("error", "attempts", "words"),
    [
        (InvalidInput("reference", "returns nothing"), 1, "reference: returns nothing"),
        (ChildDied("signal", "SIGSEGV"), 3, "SIGSEGV"),
        (RuntimeError("a fault of ours"), 3, "a fault of ours"),
    ],
)
def test_a_failing_task_ends_the_job_with_its_reason(
    context: Context, monkeypatch: pytest.MonkeyPatch, error: Exception, attempts: int, words: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setitem(task_runner.WORK, TaskKind.BASELINE, fail)
    job_id = submit(context.database, scale_job())
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
        assert status.state is JobState.FAILED
        assert words in status.detail
        (task,) = TaskRepository(session).of_job(job_id)
        assert len(task.history) == attempts
        assert job_result(session, job_id) is not None


def test_a_killed_slice_is_continued_and_repeats_nothing(context: Context, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    context.setup = FakeSetup(ledger=ledger)
    job_id = submit(context.database, scale_job(budget={"trials": 100, "seconds": 60}))
    while True:
        with context.database.write() as session:
            messages = OutboxRepository(session).waiting()
            OutboxRepository(session).mark_published([b.id for b in messages])
            tasks = TaskRepository(session).of_job(job_id)
        if tasks and tasks[-1].kind is TaskKind.SLICE:
            break
        for message in messages:
            with context.database.write() as session:
                WorkerRepository(session).heartbeat(context.worker_id)
            if message.name == ADVANCE:
                advance(context.database, message.subject)
            else:
                task_runner.run_task(context, message.subject)
    # What a worker killed in the middle leaves: a claimed task, some trials finished, some proposed.
    slice_id = tasks[-1].id
    with context.database.write() as session:
        claimed = TaskRepository(session).claim(slice_id, "dead", lease_s=-1)
        assert claimed is not None
    first: Configuration = {"BLOCK": 64, "PER": 1}
    second: Configuration = {"BLOCK": 32, "PER": 1}
    third: Configuration = {"BLOCK": 32, "PER": 2}
    with context.database.write() as session:
        candidate = candidate_list(session, job_id).items[0].id
        trials = TrialRepository(session)
        trials.propose(job_id, candidate, [first, second, third])
        times = {w.key: 100.0 for w in scale_job().workloads}
        batch = [TrialResult(first, measured(times, 1.0), 0.1)]
        trials.finish(job_id, candidate, slice_id, [*batch, TrialResult(second, measured(times, 1.0), 0.1)])
    ledger.write_text("")
    with context.database.write() as session:
        assert [t.id for t in TaskRepository(session).expire(3)] == [slice_id]
    task_runner.run_task(context, slice_id)
    timed = [line.split()[1] for line in ledger.read_text().splitlines()]
    with context.database.read() as session:
        finished = TrialRepository(session).finished(candidate)
    assert len({t.key for t in finished}) == 16
    # The default is the baseline, timed for drift.
    run = [key for key in timed if key != configuration_key(first)]
    assert configuration_key(second) not in run, "finished trials were run again"
    assert run[0] == configuration_key(third), "what was proposed runs first"


def test_a_search_without_gain_ends_although_its_clock_stands_still(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds are left if one workload is to be verified, none if both are."""
    elapsed = {False: 0.0, True: 88.0}
    monkeypatch.setattr("worker.works.search_slice.elapsed_s", lambda _s, row: elapsed[row.trials_done > 0])
    monkeypatch.setattr("db.views.snapshot.elapsed_s", lambda _s, row: elapsed[row.trials_done > 0])
    monkeypatch.setattr("tests.worker.setup_fakes.model", lambda _c, _w: 100.0)
    context.setup = FakeSetup(trial_s=0.01)
    context.settings = context.settings.model_copy(update={"slice_s": 0.05})
    job_id = submit(context.database, scale_job(budget={"trials": 100, "seconds": 100}))
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
        tasks = TaskRepository(session).of_job(job_id)
    assert status.state is JobState.DONE, status.detail
    assert len([t for t in tasks if t.kind is TaskKind.SLICE]) > 1


def test_an_attempt_that_lost_its_lease_gives_back_nothing_of_the_next_one(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of one worker may serve a queue; the second has the task when the first one stops."""
    job_id = submit(context.database, scale_job())
    advance(context.database, job_id)

    def slow(_context: Context, row: TaskRow, _lease: Lease) -> Done:
        with context.database.write() as session:
            session.execute(update(TaskRow).values(state=TaskState.QUEUED, lease_token=None))
            assert TaskRepository(session).claim(row.id, context.worker_id, 60) is not None
        return Done(None)

    monkeypatch.setitem(task_runner.WORK, TaskKind.BASELINE, slow)
    with context.database.read() as session:
        (task,) = TaskRepository(session).of_job(job_id)
    task_runner.run_task(context, task.id)
    with context.database.read() as session:
        (after,) = TaskRepository(session).of_job(job_id)
        assert after.state is TaskState.RUNNING
        assert after.attempt == 2


def test_a_worker_that_is_told_to_stop_claims_nothing(context: Context) -> None:
    job_id = submit(context.database, scale_job())
    advance(context.database, job_id)
    with context.database.write() as session:
        (task,) = TaskRepository(session).of_job(job_id)
        WorkerRepository(session).drain(context.worker_id)
    assert not task_runner.run_task(context, task.id)
    with context.database.read() as session:
        assert TaskRepository(session).get(task.id).state is TaskState.QUEUED
