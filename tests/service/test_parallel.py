"""One study on several devices: each configuration once, results shared, budgets kept to the trial."""

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

import worker.works.agent_step
from db.engine import Database, utc_now
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.search_histories import HistoryRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.repositories.workers import WorkerRepository
from db.search.proposal_pool import ProposalPool, SearchSlice
from db.search.shared_search import SharedSearcher
from db.tables import CandidateRow, TaskRow
from testbed.deadlines import HANGS_S
from testbed.repetitions import examples
from testbed.rows import add_candidate, add_job, add_task, measured
from tests.worker.fake_pool import as_it_is
from tests.worker.setup_fakes import FakeSetup, GridSearcher
from tests.worker.test_execute import SilentNotifier
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import CandidateState, JobState, SliceEnd, TaskKind, TaskState
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, StartTask, TaskView
from warpsmith.tuning.tasks import BaselineResult, SlicePayload, SliceResult, StepPayload, StepResult
from warpsmith.tuning.trials.lazy_searcher import LazySearcher
from worker import task_runner
from worker.advance import advance
from worker.device.process_context import Context
from worker.works.stored_study import export_study

DEVICES = 3


def snapshot(trials: int, done: int, tasks: list[TaskView], devices: int) -> JobSnapshot:
    """A job that searches its only candidate."""
    baseline = TaskView("b", TaskKind.BASELINE, TaskState.DONE, None, BaselineResult(device=DEVICE))
    asked = StepPayload(role="templater", round=1)
    step = TaskView("s", TaskKind.AGENT_STEP, TaskState.DONE, asked, StepResult(provider="rules"))
    candidate = CandidateSummary("c", 0, 1, CandidateState.SEARCHING, "s", done, done, 0.5 if done else None)
    state = (JobState.SEARCHING, DEVICE.device_class, (), 1.0, done)
    return JobSnapshot(_job(trials), *state, [baseline, step, *tasks], [candidate], devices)


@lru_cache
def _job(trials: int) -> Job:
    return scale_job(budget={"trials": trials, "seconds": 1000, "rounds": 1}, strategy="search")


def slices(found: JobSnapshot) -> list[SlicePayload]:
    """The slices that are decided on."""
    return [
        a.payload for a in decide(found) if isinstance(a, StartTask) and isinstance(a.payload, SlicePayload)
    ]


def test_a_new_template_is_tried_on_one_device_first() -> None:
    (gate,) = slices(snapshot(100, 0, [], devices=4))
    assert (gate.trials, gate.shared) == (1, False)
    started = slices(snapshot(100, 1, [], devices=4))
    assert [(p.trials, p.candidate_trials) for p in started] == [(99, 100)] * 4, "they have them together"
    assert all(p.shared for p in started)
    assert [(p.trials, p.shared) for p in slices(snapshot(100, 0, [], devices=1))] == [(100, False)]
    assert [p.trials for p in slices(snapshot(3, 1, [], devices=4))] == [2, 2], "one trial for each"


def running(payload: SlicePayload, name: str) -> TaskView:
    return TaskView(name, TaskKind.SLICE, TaskState.RUNNING, payload, None)


def test_a_device_that_is_free_joins_while_there_is_something_to_propose() -> None:
    (one, two) = slices(snapshot(100, 1, [], devices=2))
    ended = replace(running(one, "a"), state=TaskState.DONE, result=SliceResult(trials=40))
    (joined,) = slices(snapshot(100, 81, [ended, running(two, "b")], devices=2))
    assert (joined.trials, joined.candidate_trials) == (19, 100)
    spent = replace(ended, result=SliceResult(trials=40, ended_by=SliceEnd.SPENT))
    assert slices(snapshot(100, 81, [spent, running(two, "b")], devices=2)) == []
    assert slices(snapshot(100, 99, [ended, running(two, "b")], devices=2)) == [], "one is left"
    (again,) = slices(snapshot(100, 99, [spent, replace(ended, id="b", payload=two)], devices=2))
    assert again.candidate_trials == 100, "what an ended slice left is run by another"
    more = slices(snapshot(120, 81, [spent, running(two, "b")], devices=2))
    assert [p.candidate_trials for p in more] == [120], "the candidate may have more now"


@examples(60)
@given(data=st.data())
def test_however_slices_end_all_of_the_budget_is_run_and_no_more(data: st.DataObject) -> None:
    """Slices run their trials in any order and end early, late or at once; devices come and go."""
    budget = data.draw(st.integers(2, 30))
    tasks: list[TaskView] = []
    ran: dict[str, int] = {}
    for step in itertools.count():
        assert step < 1000, "it never ends"
        devices = data.draw(st.integers(1, 5))
        now = snapshot(budget, 1 + sum(ran.values()), list(tasks), devices)
        new = slices(now)
        for payload in new:
            name = f"t{len(tasks)}"
            ran[name] = 0
            tasks.append(TaskView(name, TaskKind.SLICE, TaskState.RUNNING, payload, None))
        running = [t for t in tasks if t.is_open]
        if not running:
            assert 1 + sum(ran.values()) == budget
            return
        chosen = data.draw(st.sampled_from(running))
        assert isinstance(chosen.payload, SlicePayload)
        most = chosen.payload.candidate_trials
        assert chosen.payload.shared is (most is not None)
        granted = chosen.payload.trials - ran[chosen.id]
        left = granted if most is None else min(granted, most - 1 - sum(ran.values()))
        did = data.draw(st.integers(0, left))
        ran[chosen.id] += did
        assert 1 + sum(ran.values()) <= budget
        if did in (0, left) or data.draw(st.booleans()):
            # A slice that brings nothing would go on for ever; real ones run what they can.
            if ran[chosen.id] == 0 and left > 0:
                ran[chosen.id] += 1
            end = SliceEnd.SPENT if did == left else SliceEnd.LIMIT
            result = SliceResult(trials=ran[chosen.id], ended_by=end)
            ended = replace(chosen, state=TaskState.DONE, result=result)
            tasks[tasks.index(chosen)] = ended


SPACE: list[Configuration] = [{"BLOCK": b, "PER": p} for b in range(1, 21) for p in range(1, 6)]


def shared_searchers(
    database: Database, count: int, trials: int = 1000
) -> dict[str, tuple[SharedSearcher, GridSearcher]]:
    """Slices of one search, by task, with the searchers beneath them."""
    with database.write() as session:
        job = add_job(session).id
        candidate = add_candidate(session, job).id
        tasks = [add_task(session, job, TaskKind.SLICE).id for _ in range(count)]
        for task in tasks:
            row = session.get_one(TaskRow, task)
            row.state = TaskState.RUNNING
            row.payload = SlicePayload(candidate=candidate, trials=1, seconds=1.0)
    inner = {task: GridSearcher(list(SPACE)) for task in tasks}
    late = {task: LazySearcher(partial(inner.__getitem__, task)) for task in tasks}
    return {
        t: (
            SharedSearcher(
                late[t], ProposalPool(database, SearchSlice(job, candidate, t, trials, utc_now()))
            ),
            inner[t],
        )
        for t in tasks
    }


def run(database: Database, shared: SharedSearcher, configuration: Configuration) -> None:
    """Run a trial of a slice."""
    of = shared.pool.of
    with database.write() as session:
        done = TrialResult(configuration, measured({"n=4096": 5.0}, 0.5), 0.0)
        assert TrialRepository(session).finish(of.job_id, of.candidate_id, of.task_id, [done]) == 1
    shared.tell(configuration, 0.5)


def test_searchers_share_a_space_and_run_nothing_twice(database: Database) -> None:
    searchers = shared_searchers(database, 4)

    def search(task: str) -> list[str]:
        shared, mine = searchers[task][0], []
        while found := shared.ask(2):
            for configuration in found:
                mine.append(configuration_key(configuration))
                run(database, shared, dict(configuration))
        assert not shared.gave_up
        shared.close()
        return mine

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(search, searchers))
    counts = Counter(key for part in parts for key in part)
    assert set(counts.values()) == {1}
    assert set(counts) == {configuration_key(c) for c in SPACE}
    assert sum(bool(part) for part in parts) >= 2, "one did everything"


@pytest.mark.parametrize("kind", ["together", "one after the other"])
def test_searchers_run_what_they_may_have_together_to_the_trial(database: Database, kind: str) -> None:
    searchers = shared_searchers(database, 4, trials=37)

    def search(task: str) -> int:
        shared, mine = searchers[task][0], 0
        while (found := shared.ask(3)) and (kind == "together" or mine < 10):
            for configuration in found:
                mine += 1
                run(database, shared, dict(configuration))
        shared.close()
        assert not shared.gave_up
        return mine

    with ThreadPoolExecutor(4 if kind == "together" else 1) as pool:
        parts = list(pool.map(search, searchers))
    taken = sum(parts)
    if kind == "together":
        assert taken == 37
        assert {shared.cut_off for shared, _ in searchers.values()} == {SliceEnd.SPENT}
    with database.read() as session:
        (candidate,) = {shared.pool.of.candidate_id for shared, _ in searchers.values()}
        assert taken <= HistoryRepository(session).counted(candidate) <= 37


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_who_has_lost_the_lock_proposes_nothing_more(database: Database) -> None:
    """The server ended its connection, as a restart does, and another slice proposes since then."""
    (first, inner), (second, _) = shared_searchers(database, 2, trials=20).values()
    assert len(first.ask(1)) == 1
    assert first._leads()
    with database.write() as session:
        lost = session.execute(
            text(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_locks "
                "WHERE locktype = 'advisory' AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        ).scalar_one()
    assert lost == 1
    while second.ask(5):
        pass
    assert second.spent
    before = len(inner.waiting)
    assert not first._leads()
    assert first.ask(4) == [] and len(inner.waiting) == before
    with database.read() as session:
        assert HistoryRepository(session).counted(first.pool.of.candidate_id) == 20
    for shared in (first, second):
        shared.close()


def test_who_proposes_next_has_heard_of_everything(database: Database) -> None:
    searchers = shared_searchers(database, 2)
    (first, _), (second, heard) = searchers.values()
    ran = list(first.ask(1))
    run(database, first, dict(ran[0]))
    ran += (theirs := list(second.ask(2)))
    assert theirs and not second._leads(), "it claims what the first has proposed"
    for configuration in theirs:
        run(database, second, dict(configuration))
    assert not heard.told
    first.close()
    while len(ran) < len(SPACE):
        found = second.ask(1)
        assert found, "what was left in the pool is run as well"
        run(database, second, dict(found[0]))
        ran += found
    assert second.ask(1) == [] and second.cut_off is None, "there is nothing more"
    second.close()
    assert set(heard.told) == {configuration_key(c) for c in SPACE}
    assert len({configuration_key(c) for c in ran}) == len(ran) == len(SPACE)


def test_a_slice_that_is_to_end_does_not_wait_for_proposals(database: Database) -> None:
    searchers = shared_searchers(database, 2)
    (first, _), (second, _) = searchers.values()
    assert first.ask(1)
    for _ in range(30):
        second._lead_at = 0.0
        assert not second._lead(), "asking in vain, again and again, takes nothing for good"
    second._alive = lambda: False
    while second.ask(1):
        pass
    assert second.gave_up and second.cut_off is SliceEnd.LIMIT, "the search itself goes on"
    for shared in (first, second):
        shared.close()


def test_leftovers_of_open_slices_are_left_alone(database: Database) -> None:
    with database.write() as session:
        job = add_job(session).id
        candidate = add_candidate(session, job).id
        open_, ended, mine = (add_task(session, job, TaskKind.SLICE).id for _ in range(3))
        trials = TrialRepository(session)
        for block, task in ((1, open_), (2, ended), (3, mine), (4, None)):
            trials.propose(job, candidate, [{"BLOCK": block, "PER": 1}], task)
        session.get_one(TaskRow, ended).state = TaskState.DONE
    with database.write() as session:
        taken = TrialRepository(session).take_leftover(job, candidate, mine)
        assert [c["BLOCK"] for c in taken] == [2, 3, 4]
        assert TrialRepository(session).take_leftover(job, candidate, open_) == [{"BLOCK": 1, "PER": 1}]


@pytest.mark.parametrize(
    "database_url", ["postgres", pytest.param("sqlite", marks=pytest.mark.nightly)], indirect=True
)
def test_a_job_on_several_devices_runs_everything_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three workers, each with a device of its own, in threads; the whole space, and a budget within it."""
    monkeypatch.setattr(worker.works.agent_step, "run_step", as_it_is)
    url = database.engine.url.render_as_string(hide_password=False)
    config = Settings(_env_file=None, data_dir=tmp_path, database_url=url, lease_s=30, reuse_trials_s=0)
    contexts = []
    for n in range(DEVICES):
        device = DEVICE.model_copy(update={"uid": f"test-{n}"})
        setup = FakeSetup(trial_s=0.02)
        setup.ports = replace(setup.ports, opener=_Opener(setup.ports.opener, device))
        with database.write() as session:
            WorkerRepository(session).register(f"w{n}", "host", 1, "0", ["control"], [device], {})
        contexts.append(Context(config, database, SilentNotifier(), f"w{n}", setup))
    for budget in (100, 11):
        with database.write() as session:
            job = scale_job(budget={"trials": budget, "seconds": 600})
            job_id = JobRepository(session).create(job)[0].id
        _run(contexts, job_id)
        with database.read() as session:
            rows = TrialRepository(session).page(job_id, limit=1000)
            row = JobRepository(session).get(job_id)
            tasks = TaskRepository(session).of_job(job_id)
        assert row.state is JobState.DONE, row.detail
        assert row.trials_done == len(rows) == min(16, budget)
        assert len({r.key for r in rows}) == len(rows)
        assert all(r.outcome is not None for r in rows)
        shared = [t for t in tasks if isinstance(t.payload, SlicePayload) and t.payload.shared]
        assert len({t.worker for t in shared}) >= 2


class _Opener:
    """Another device, with the same behaviour."""

    def __init__(self, inner: Any, info: Any) -> None:
        self._inner = inner
        self.info = info

    def open(self) -> Any:
        return self._inner.open()


def _run(contexts: list[Context], job_id: str) -> None:
    """Workers that answer messages until the job has ended."""
    database = contexts[0].database
    ended = threading.Event()

    def serve(context: Context) -> None:
        queue = f"gpu.{DEVICE.device_class}"
        while not ended.wait(0.05):
            with database.write() as session:
                WorkerRepository(session).heartbeat(context.worker_id)
                outbox = OutboxRepository(session)
                messages = outbox.waiting()
                outbox.mark_published([b.id for b in messages])
            if messages:
                advance(database, job_id)
            task_runner.run_next(context, "agents")
            task_runner.run_next(context, queue)
            with database.read() as session:
                if JobRepository(session).get(job_id).state.is_terminal:
                    ended.set()

    with ThreadPoolExecutor(len(contexts)) as pool:
        for done in [pool.submit(serve, c) for c in contexts]:
            done.result(HANGS_S)


def test_several_exports_at_once_append_each_trial_once(database: Database, tmp_path: Path) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    config = Settings(_env_file=None, data_dir=tmp_path, database_url=url)
    contexts = [Context(config, database, SilentNotifier(), f"w{n}", FakeSetup()) for n in range(3)]
    with database.write() as session:
        job = add_job(session).id
        JobRepository(session).pin(job, DEVICE.device_class)
        candidate = CandidateRepository(session).get(add_candidate(session, job).id)
        space: list[Configuration] = [
            {"BLOCK": b, "PER": p} for b in (32, 64, 128, 256) for p in (1, 2, 4, 8)
        ]
        trials = TrialRepository(session)
        trials.propose(job, candidate.id, space)
        done = [TrialResult(c, measured({"n=4096": 5.0}, 0.5), 0.0) for c in space]
        trials.finish(job, candidate.id, None, done)
    # Optuna makes its tables without a lock; here they are there.
    optuna.storages.RDBStorage(url).engine.dispose()
    with ThreadPoolExecutor(6) as pool:
        for ended in [pool.submit(_export, contexts[n % 3], job, candidate, n) for n in range(6)]:
            ended.result(HANGS_S)
    storage = optuna.storages.RDBStorage(url)
    try:
        (name,) = [s.study_name for s in optuna.get_all_study_summaries(storage)]
        study = optuna.load_study(study_name=name, storage=storage)
        assert sorted(t.user_attrs["warpsmith_number"] for t in study.trials) == list(range(16))
    finally:
        storage.engine.dispose()


def _export(context: Context, job: str, candidate: CandidateRow, number: int) -> None:
    export_study(context, job, candidate, wait=number % 2 == 0)
