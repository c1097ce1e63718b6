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

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, invariant, multiple, rule
from sqlalchemy import func, select

from db.identifiers import new_id
from db.repositories.jobs import JobRepository
from db.repositories.tasks import LOST_FACTOR, TaskRepository
from db.tables import EventRow, JobRow, TaskRow, TrialRow
from tests.service.modelled_service import (
    JOB,
    JOBS,
    MAX_ATTEMPTS,
    WORKERS,
    Held,
    ModelJob,
    ModelledService,
)
from warpsmith.domain.state import JobState, TaskKind, TaskState, TrialState


class ServiceMachine(ModelledService):
    """One example: up to a few jobs, three workers with a device each."""

    leases = Bundle("leases")
    jobs_known = Bundle("jobs_known")

    @rule(target=jobs_known, repeat=st.booleans(), notify=st.booleans())
    def submit(self, repeat: bool, notify: bool) -> str:
        """A client posts a job, perhaps twice with the same key; the message is sent, or lost."""
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
        if notify:
            self._advance(row.id)
        return row.id

    @rule(job=jobs_known)
    def decide(self, job: str) -> None:
        """A message for `advance` comes, now or late or twice."""
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
            accepted = self._fenced(lease, lambda: TaskRepository(session).renew(lease.task, lease.token, 60))
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

    @rule(lease=leases)
    def expire(self, lease: Held) -> None:
        """A lease runs out: its holder is gone, or only slow and will come back."""
        self._count()
        self._expire(lease)

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
                assert worker is not None and worker not in leased, "a device has two leases"
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
