"""What workers do with a job of the model check, through their repositories, beside a model of it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import optuna
from hypothesis.stateful import RuleBasedStateMachine
from sqlalchemy import select, update

from db.engine import Database, clock, normal_url
from db.identifiers import new_id
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import LOST_FACTOR, TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.repositories.workers import WorkerRepository
from db.tables import TaskRow, TrialRow
from testbed.recordings import PARAMETERS, replay_job
from warpsmith.backends.replay import DRIVER, LIMITS
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState, TaskKind, TaskState, TrialState
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.errors import LeaseLost
from warpsmith.search.searchers.stored_study import StudyTrial, export
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


class ModelledService(RuleBasedStateMachine):
    """Jobs and workers in the database, and what the model says of them; the rules are in `machine`."""

    database: ClassVar[Database]
    url: ClassVar[str]
    steps: ClassVar[int] = 0
    check_study_every: ClassVar[int] = 1
    examples: ClassVar[int] = 0

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

    def _fail(self, lease: Held, final: bool) -> None:
        with self.database.write() as session:
            tasks = TaskRepository(session)
            accepted = self._fenced(
                lease,
                lambda: tasks.fail(lease.task, lease.token, "error", "x", MAX_ATTEMPTS, final=final),
            )
        if accepted:
            task = self._model(lease)
            task.failed += 1
            self._released(task, final or self._is_spent(task))
        self._drop(lease)

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
        outcomes = [TrialResult(c, _outcome(bad), 0.1) for c in [*leftover, *fresh][: min(count, finish)]]
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

        if self._fenced(held, write):
            held.left -= stored

    def _finish(self, held: Held) -> None:
        result = self._result(held)
        with self.database.write() as session:
            accepted = self._fenced(
                held, lambda: TaskRepository(session).finish(held.task, held.token, result)
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

    def _fenced(self, held: Held, write: Callable[[], object]) -> bool:
        """Whether the write was taken; the model must agree."""
        task = self._model(held)
        holds = task.state is TaskState.RUNNING and task.token == held.token
        try:
            write()
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
