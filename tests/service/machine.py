"""A Hypothesis state machine over claim, heartbeat, finish, expire and cancel, against a model.

The rules call the same repositories and decisions as workers do; the model says what each call must
answer. Invariants (after every step, over all jobs of the example):

1. every accepted job reaches exactly one terminal state (the end of each example drives it there);
2. no terminal state ever changes;
3. a result is accepted only from the holder of the current lease token, and once;
4. no device and no task ever has two leases;
5. no job spends more trials than its budget, and its counters equal its rows;
6. the stored Optuna study equals our finished trials (checked at the end of an example).
"""

import random
from dataclasses import dataclass, field
from typing import ClassVar

import optuna
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from sqlalchemy import func, select, update

from db.engine import Database, clock, normal_url
from db.identifiers import new_id
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import LOST_FACTOR, TaskRepository
from db.repositories.trials import FinishedTrial, TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import EventRow, JobRow, TaskRow, TrialRow
from testbed.recordings import PARAMETERS, replay_job
from warpsmith.backends.replay import DRIVER, LIMITS
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job
from warpsmith.domain.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.domain.state import JobState, TaskKind, TaskState, TrialState
from warpsmith.domain.template import Template
from warpsmith.errors import LeaseLost
from warpsmith.search.stored_study import FinishedTrial as StudyTrial
from warpsmith.search.stored_study import export
from warpsmith.tuning.tasks import (
    BaselineResult,
    CasesPayload,
    CasesResult,
    ProfilePayload,
    ProfileResult,
    Result,
    SlicePayload,
    SliceResult,
    StepResult,
    VerifyPayload,
    VerifyResult,
)
from worker.advance import advance

DEVICE = DeviceInfo(
    backend=Backend.REPLAY,
    index=0,
    uid="model",
    name="model",
    driver=DRIVER,
    architecture=DRIVER,
    limits=LIMITS,
)
MAX_ATTEMPTS = 3
BUDGET = 6
JOB = Job.model_validate(replay_job(budget={"trials": BUDGET, "seconds": 3600, "rounds": 1}))
WORKERS = 3
JOBS = 3
TERMINAL = (TaskState.DONE, TaskState.DEAD, TaskState.CANCELLED)


@dataclass
class Held:
    """What a worker believes that it holds; the database may know better."""

    job: str
    task: str
    token: str
    worker: int
    kind: TaskKind
    candidate: str | None = None
    left: int = 0


@dataclass
class ModelTask:
    """What a task must be."""

    state: TaskState = TaskState.QUEUED
    token: str | None = None
    worker: int | None = None
    failed: int = 0
    lost: int = 0
    accepted: int = 0


@dataclass
class ModelJob:
    """What a job must be."""

    ended: JobState | None = None
    tasks: dict[str, ModelTask] = field(default_factory=dict)


class ServiceMachine(RuleBasedStateMachine):
    """One example: up to a few jobs, three workers with a device each."""

    database: ClassVar[Database]
    url: ClassVar[str]
    steps: ClassVar[int] = 0
    check_study_every: ClassVar[int] = 1
    examples: ClassVar[int] = 0

    leases = Bundle("leases")
    jobs_known = Bundle("jobs_known")

    def __init__(self) -> None:
        super().__init__()
        type(self).examples += 1
        self.random = random.Random(0)
        self.jobs: dict[str, ModelJob] = {}
        self.holds: dict[int, Held | None] = dict.fromkeys(range(WORKERS))
        self.worker_ids = [new_id() for _ in range(WORKERS)]
        with self.database.write() as session:
            for worker in self.worker_ids:
                WorkerRepository(session).register(worker, "model", 1, "0", ("gpu",), (DEVICE,), {})

    @rule(target=jobs_known, repeat=st.booleans(), ring=st.booleans())
    def submit(self, repeat: bool, ring: bool) -> str:
        """A client posts a job, perhaps twice with the same key; the bell rings, or is lost."""
        self._count()
        if len(self.jobs) >= JOBS:
            return self.random.choice(list(self.jobs))
        job, key = JOB, new_id()
        with self.database.write() as session:
            row, fresh = JobRepository(session).create(job, key)
        assert fresh
        if repeat:
            with self.database.write() as session:
                again, fresh = JobRepository(session).create(job, key)
            assert (again.id, fresh) == (row.id, False)
        self.jobs[row.id] = ModelJob()
        if ring:
            self._advance(row.id)
        return row.id

    @rule(job=jobs_known)
    def decide(self, job: str) -> None:
        """A bell rings `advance`, now or late or twice."""
        self._count()
        self._advance(job)

    @rule(target=leases, job=jobs_known, worker=st.integers(0, WORKERS - 1), old=st.booleans())
    def claim(self, job: str, worker: int, old: bool) -> object:
        """A worker hears of a task: the newest, or any of long ago."""
        self._count()
        model = self.jobs[job]
        if self.holds[worker] is not None or not model.tasks:
            return multiple()
        task = self.random.choice(list(model.tasks)) if old else list(model.tasks)[-1]
        held = self._claim(job, task, worker)
        return multiple() if held is None else held

    @rule(lease=leases)
    def heartbeat(self, lease: Held) -> None:
        """The holder renews, or somebody who believes to be."""
        self._count()
        with self.database.write() as session:
            accepted = self._fenced(
                lease, lambda: TaskRepository(session).renew(lease.task, lease.token, 60), final=False
            )
        if not accepted:
            self._drop(lease)

    @rule(target=leases, lease=leases, worker=st.integers(0, WORKERS - 1))
    def take_over(self, lease: Held, worker: int) -> object:
        """A lease runs out and another worker goes on; the first one comes back later."""
        self._count()
        self._expire(lease)
        task = self._model(lease)
        if self.holds[worker] is not None or task.state is not TaskState.QUEUED:
            return multiple()
        held = self._claim(lease.job, lease.task, worker)
        return multiple() if held is None else held

    @rule(lease=consumes(leases), times=st.integers(1, MAX_ATTEMPTS * LOST_FACTOR), lost=st.booleans())
    def lose_again_and_again(self, lease: Held, times: int, lost: bool) -> None:
        """A task that kills or fails every worker: it is given up in the end, and no sooner."""
        self._count()
        for _ in range(times):
            if lost:
                self._expire(lease)
            else:
                self._fail(lease, final=False)
            self._drop(lease)
            task = self._model(lease)
            free = next((w for w, held in self.holds.items() if held is None), None)
            if task.state is not TaskState.QUEUED or free is None:
                return
            again = self._claim(lease.job, lease.task, free)
            assert again is not None
            lease = again

    @rule(lease=leases, count=st.integers(1, 4), finish=st.integers(0, 4), bad=st.booleans())
    def run_trials(self, lease: Held, count: int, finish: int, bad: bool) -> None:
        """A batch of a slice: proposals and outcomes in one fenced transaction, as the sink does."""
        self._count()
        if lease.kind is TaskKind.SLICE and lease.left > 0:
            self._trials(lease, min(count, lease.left), finish, bad)

    @rule(lease=consumes(leases))
    def finish(self, lease: Held) -> None:
        """A result is brought, in time or late."""
        self._count()
        self._finish(lease)

    @rule(lease=leases)
    def finish_and_believe_it_failed(self, lease: Held) -> None:
        """The reply of the commit was lost: the worker will try the same token again."""
        self._count()
        self._finish(lease)

    @rule(lease=consumes(leases), final=st.booleans())
    def fail(self, lease: Held, final: bool) -> None:
        """An attempt fails."""
        self._count()
        self._fail(lease, final)

    def _fail(self, lease: Held, final: bool) -> None:
        with self.database.write() as session:
            tasks = TaskRepository(session)
            accepted = self._fenced(
                lease,
                lambda: tasks.fail(lease.task, lease.token, "error", "x", MAX_ATTEMPTS, final=final),
                final=False,
            )
        if accepted:
            task = self._model(lease)
            task.failed += 1
            self._released(task, final or self._is_spent(task))
        self._drop(lease)

    @rule(lease=leases)
    def expire(self, lease: Held) -> None:
        """A lease runs out: its holder is gone, or only slow and will come back."""
        self._count()
        self._expire(lease)

    def _expire(self, lease: Held) -> None:
        with self.database.write() as session:
            gone = update(TaskRow).where(TaskRow.id == lease.task, TaskRow.lease_token == lease.token)
            session.execute(gone.values(lease_until=clock(session, -1)))
        with self.database.write() as session:
            expired = {t.id for t in TaskRepository(session).expire(MAX_ATTEMPTS)}
        task = self._model(lease)
        holds = task.state is TaskState.RUNNING and task.token == lease.token
        assert expired == ({lease.task} if holds else set())
        if holds:
            task.lost += 1
            self._released(task, self._is_spent(task))

    @rule(worker=st.integers(0, WORKERS - 1))
    def stop_worker(self, worker: int) -> None:
        """A worker goes in order and gives back what it holds."""
        self._count()
        with self.database.write() as session:
            TaskRepository(session).give_back(self.worker_ids[worker])
        for model in self.jobs.values():
            for task in model.tasks.values():
                if task.state is TaskState.RUNNING and task.worker == worker:
                    self._released(task, False)
        self.holds[worker] = None

    @rule(job=jobs_known)
    def cancel(self, job: str) -> None:
        """A client cancels, perhaps a job that has ended."""
        self._count()
        self._cancel(job)

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        """Invariants 2 to 5."""
        if not self.jobs:
            return
        with self.database.read() as session:
            jobs = session.scalars(select(JobRow).where(JobRow.id.in_(self.jobs))).all()
            tasks = session.execute(
                select(TaskRow.id, TaskRow.job_id, TaskRow.state, TaskRow.lease_token, TaskRow.worker).where(
                    TaskRow.job_id.in_(self.jobs)
                )
            ).all()
            query = select(TrialRow.job_id, func.count()).where(
                TrialRow.job_id.in_(self.jobs), TrialRow.state == TrialState.FINISHED
            )
            finished = {job: int(count) for job, count in session.execute(query.group_by(TrialRow.job_id))}
        for row in jobs:
            model = self.jobs[row.id]
            if model.ended is not None:
                assert row.state is model.ended, "a terminal state changed"
            elif row.state.is_terminal:
                model.ended = row.state
            assert row.trials_done <= row.budget_trials, "a budget was overspent"
            assert row.trials_done == finished.get(row.id, 0), "a counter differs from its rows"
        leased: set[str] = set()
        for task_id, job_id, state, token, worker in tasks:
            task = self.jobs[job_id].tasks[task_id]
            assert (state, token) == (task.state, task.token)
            assert task.accepted <= 1, "two results of one task"
            if state is TaskState.RUNNING:
                assert worker not in leased, "a device has two leases"
                leased.add(worker)

    def teardown(self) -> None:
        """Invariants 1 and 6: leases run out, everything is worked off, and each job has ended once."""
        study = self.examples % self.check_study_every == 0
        for worker in range(WORKERS):
            self.stop_worker(worker)
        for job in self.jobs:
            self._work_off(job)
        self.rows_are_as_the_model_says()
        for job in self.jobs:
            with self.database.read() as session:
                row = JobRepository(session).get(job)
                events = session.scalars(select(EventRow).where(EventRow.job_id == job)).all()
            assert row.state.is_terminal, f"job {job} is stuck in {row.state.value}: {row.detail}"
            ends = [e for e in events if e.kind == "state" and JobState(str(e.data["state"])).is_terminal]
            assert len(ends) == 1, "a job ended more than once"
            if study:
                self._check_study(job)

    def _work_off(self, job: str) -> None:
        for _ in range(40):
            self._advance(job)
            model = self.jobs[job]
            waiting = [t for t, m in model.tasks.items() if m.state is TaskState.QUEUED]
            if not waiting:
                return
            held = self._claim(job, waiting[0], 0)
            assert held is not None
            if held.kind is TaskKind.SLICE and held.left > 0:
                self._trials(held, held.left, held.left, bad=False)
            self._finish(held)
        raise AssertionError("a job does not end")

    def _advance(self, job: str) -> None:
        with self.database.write() as session:
            for worker in self.worker_ids:
                WorkerRepository(session).heartbeat(worker)
        advance(self.database, job)
        model = self.jobs[job]
        with self.database.read() as session:
            for row in TaskRepository(session).of_job(job):
                if row.id not in model.tasks:
                    assert model.ended is None, "an ended job started a task"
                    assert not any(t.state not in TERMINAL for t in model.tasks.values())
                    model.tasks[row.id] = ModelTask()

    def _claim(self, job: str, task_id: str, worker: int) -> Held | None:
        task = self.jobs[job].tasks[task_id]
        with self.database.write() as session:
            row = TaskRepository(session).claim(task_id, self.worker_ids[worker], 60)
        assert (row is not None) == (task.state is TaskState.QUEUED)
        if row is None:
            return None
        assert row.lease_token is not None
        assert row.lease_token != task.token
        held = Held(job, task_id, row.lease_token, worker, row.kind)
        payload = row.payload
        if isinstance(payload, SlicePayload):
            with self.database.read() as session:
                done = TrialRepository(session).finished(payload.candidate)
            held.candidate = payload.candidate
            held.left = payload.trials - sum(t.task_id == task_id for t in done)
        task.state, task.token, task.worker = TaskState.RUNNING, row.lease_token, worker
        self.holds[worker] = held
        return held

    def _trials(self, held: Held, count: int, finish: int, bad: bool) -> None:
        assert held.candidate is not None
        with self.database.read() as session:
            proposed = select(TrialRow).where(
                TrialRow.candidate_id == held.candidate, TrialRow.state == TrialState.PROPOSED
            )
            leftover = [t.configuration for t in session.scalars(proposed.order_by(TrialRow.number))]
            known = {t.key for t in TrialRepository(session).finished(held.candidate)}
        fresh: list[Configuration] = []
        while len(leftover) + len(fresh) < count:
            drawn: Configuration = {n: self.random.choice(v) for n, v in PARAMETERS.items()}
            if configuration_key(drawn) not in known:
                fresh.append(drawn)
        outcomes = [FinishedTrial(c, _outcome(bad), 0.1) for c in [*leftover, *fresh][: min(count, finish)]]
        database, stored = self.database, 0

        def write() -> None:
            nonlocal stored
            with database.write() as session:
                TaskRepository(session).renew(held.task, held.token, 60)
                trials = TrialRepository(session)
                trials.propose(held.job, held.candidate or "", fresh)
                stored = trials.finish(held.job, held.candidate or "", held.task, outcomes)
                again = trials.finish(held.job, held.candidate or "", held.task, outcomes)
                assert again == 0, "an outcome was accepted twice"

        if self._fenced(held, write, final=False):
            held.left -= stored

    def _finish(self, held: Held) -> None:
        result = self._result(held)
        with self.database.write() as session:
            accepted = self._fenced(
                held, lambda: TaskRepository(session).finish(held.task, held.token, result), final=True
            )
        if accepted:
            task = self._model(held)
            task.state, task.token = TaskState.DONE, None
            task.accepted += 1
        self._drop(held)

    def _result(self, held: Held) -> Result:
        with self.database.read() as session:
            row = TaskRepository(session).get(held.task)
            job = JobRepository(session).get(held.job, with_spec=True).spec
            payload = row.payload
        if held.kind is TaskKind.BASELINE:
            return BaselineResult(device=DEVICE)
        if isinstance(payload, CasesPayload):
            return CasesResult()
        if isinstance(payload, ProfilePayload):
            return ProfileResult()
        if isinstance(payload, SlicePayload):
            return SliceResult(trials=1)
        if isinstance(payload, VerifyPayload):
            return VerifyResult(comparisons=(), choices=(), speedup=1.0)
        return StepResult(provider="model", template=Template(kernel=job.kernel, space=job.space))

    def _fenced(self, held: Held, write: "object", final: bool) -> bool:
        """Whether the write was taken; the model must agree."""
        task = self._model(held)
        holds = task.state is TaskState.RUNNING and task.token == held.token
        try:
            write()  # type: ignore[operator]
        except LeaseLost:
            assert not holds, "the holder of a lease was refused"
            return False
        assert holds, "a write without the lease was accepted"
        return True

    def _cancel(self, job: str) -> None:
        model = self.jobs[job]
        with self.database.write() as session:
            row = JobRepository(session).cancel(job)
        assert row.state is (model.ended or JobState.CANCELLED)
        model.ended = row.state
        for task in model.tasks.values():
            if task.state not in TERMINAL:
                task.state, task.token = TaskState.CANCELLED, None

    def _check_study(self, job: str) -> None:
        with self.database.read() as session:
            candidates = CandidateRepository(session).of_job(job, with_templates=True)
            for candidate in candidates:
                rows = TrialRepository(session).finished(candidate.id)
                trials = [StudyTrial(t.number, t.configuration, t.objective, "") for t in rows]
                for _ in range(2):
                    export(study_url(self.url), candidate.id, candidate.template.space, trials)
                told = stored_trials(study_url(self.url), candidate.id) if rows else []
                assert len(told) == len(rows), "the study differs from our rows"
                ours = sorted(t.objective for t in rows if t.objective is not None)
                assert sorted(t.value for t in told if t.value is not None) == ours

    def _model(self, held: Held) -> ModelTask:
        return self.jobs[held.job].tasks[held.task]

    def _released(self, task: ModelTask, dead: bool) -> None:
        task.state, task.token = (TaskState.DEAD if dead else TaskState.QUEUED), None

    def _is_spent(self, task: ModelTask) -> bool:
        return task.failed >= MAX_ATTEMPTS or task.lost >= MAX_ATTEMPTS * LOST_FACTOR

    def _drop(self, held: Held) -> None:
        if self.holds[held.worker] is held:
            self.holds[held.worker] = None

    def _count(self) -> None:
        type(self).steps += 1


def study_url(url: str) -> str:
    """Optuna's address of the database."""
    return normal_url(url).render_as_string(hide_password=False)


def stored_trials(url: str, name: str) -> list[optuna.trial.FrozenTrial]:
    """The trials of a study, as Optuna reads them."""
    storage = optuna.storages.RDBStorage(url)
    try:
        return optuna.load_study(study_name=name, storage=storage).trials
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _outcome(bad: bool) -> Outcome:
    if bad:
        return Rejected(stage=Stage.RUN, reason="as the model wants")
    return Measured(timings=(), objective=0.5)
