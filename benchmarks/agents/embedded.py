"""One job after another in this process: SQLite, a real device, every bell answered by hand.

Compilers, kernels and references run in their sandboxed children, as in the service.
"""

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db import migrate, result_views
from db.broker import Bell
from db.engine import Database
from db.message_names import ADVANCE
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.lessons import LessonRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import DEFAULT_TENANT, TrialRow
from testbed.replay import replay
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import Job
from warpsmith.domain.space import Configuration
from warpsmith.settings import Settings
from warpsmith.tuning.lessons.lesson import Lesson
from worker import task_runner
from worker.advance import advance
from worker.device_setup import open_setup
from worker.process_context import Context

Replies = Mapping[str, Sequence[Any]]
"""Answers by role, in order; see `replies/`."""


PATIENCE = 10.0
"""A job that takes so many times its seconds will not end."""


class _Silent(Bell):
    def __init__(self) -> None: ...

    def ring(self, name: str, queue: str, subject: str) -> bool:
        return False


@dataclass(frozen=True)
class Run:
    """What became of a job."""

    state: str
    detail: str
    speedup: float
    """Verified; a workload that keeps its baseline counts as 1."""
    candidates: int
    trials: int
    rejected: int
    tokens: int
    usd: float
    prompt_characters: int
    reply_characters: int
    device_s: float
    """Of all trials: compiling, checking and timing."""
    job_s: float
    """From the baseline to the end."""
    fallbacks: tuple[str, ...]
    """Why the rules answered in another's place."""
    replay_differences: tuple[str, ...]


class Embedded:
    """A database and a worker of its own, for as long as the context lasts.

    Args:
        lessons: what its jobs know of earlier ones; none: its jobs know nothing, of each other neither.
    """

    def __init__(self, device: DeviceInfo, lessons: Sequence[Lesson] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warpsmith-strategies-")
        url = f"sqlite:///{Path(self._folder.name) / 'jobs.db'}"
        migrate.upgrade(url)
        self._database = Database(url)
        # Without lessons no job may know what another found: seeds and strategies are to be independent.
        settings = Settings(
            _env_file=None,
            data_dir=Path(self._folder.name),
            database_url=url,
            reuse_trials_s=0,
            remembers=bool(lessons),
        )
        self._setup = open_setup(settings, device)
        self._context = Context(settings, self._database, _Silent(), "w", self._setup)
        with self._database.write() as session:
            WorkerRepository(session).register("w", "here", 1, "0", ["control"], [device], {})
            for number, lesson in enumerate(lessons):
                LessonRepository(session).add(f"earlier-{number}", DEFAULT_TENANT, lesson)
        self.job_id = ""
        """The last job."""

    def __enter__(self) -> "Embedded":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        close: Callable[[], None] | None = getattr(self._setup.ports.compiler, "close", None)
        if close is not None:
            close()
        self._database.dispose()
        self._folder.cleanup()

    def run(self, job: Job, replies: Replies | None = None, by: str = "") -> Run:
        """Work until the job has ended.

        Args:
            replies: answers to the questions that go outside.
            by: who wrote them.
        """
        with self._database.write() as session:
            WorkerRepository(session).heartbeat("w")
            name = self.job_id = JobRepository(session).create(job)[0].id
        left = {role: list(answers) for role, answers in (replies or {}).items()}
        patience = time.monotonic() + PATIENCE * job.budget.seconds
        while not self._ended(name):
            if time.monotonic() > patience:
                raise SystemExit(f"job {job.name} does not end")
            if not self._ring() and not self._answer(name, left, by):
                time.sleep(0.05)
        return self._result(name)

    def trials(self) -> tuple[tuple[Configuration, float | None], ...]:
        """Configurations and objectives of the last job's trials in their order; None: rejected or cut
        short."""
        with self._database.read() as session:
            rows = TrialRepository(session).page(self.job_id, limit=10_000)
            return tuple((row.configuration, row.objective) for row in rows if row.outcome is not None)

    def lesson(self) -> Lesson | None:
        """What the last job taught."""
        with self._database.read() as session:
            return next((lesson for _, lesson in LessonRepository(session).page(self.job_id, None, 1)), None)

    def _ended(self, name: str) -> bool:
        with self._database.read() as session:
            return JobRepository(session).get(name).state.is_terminal

    def _ring(self) -> bool:
        with self._database.write() as session:
            bells = OutboxRepository(session).waiting()
            OutboxRepository(session).mark_published([b.id for b in bells])
        for bell in bells:
            if bell.name == ADVANCE:
                advance(self._database, bell.subject)
            else:
                task_runner.run_task(self._context, bell.subject)
        return bool(bells)

    def _answer(self, name: str, left: dict[str, list[Any]], by: str) -> bool:
        with self._database.write() as session:
            requests = AgentRequestRepository(session)
            waiting = requests.open(name)
            for request in waiting:
                if not left.get(request.role):
                    raise SystemExit(f"no reply is left for the {request.role} of round {request.round}")
                requests.answer(request.id, json.dumps(left[request.role].pop(0)), by)
        return bool(waiting)

    def _result(self, name: str) -> Run:
        with self._database.read() as session:
            status = result_views.job_status(session, name)
            result = result_views.job_result(session, name)
            assert result is not None
            steps = AgentStepRepository(session).of_job(name)
            device_s = session.execute(
                select(func.sum(TrialRow.seconds)).where(TrialRow.job_id == name)
            ).scalar_one()
            return Run(
                state=status.state.value,
                detail=status.detail,
                speedup=result.speedup or 1.0,
                candidates=len(result.candidates),
                trials=status.trials_done,
                rejected=status.trials_rejected,
                tokens=status.tokens_used,
                usd=status.usd_used,
                prompt_characters=sum(len(s.prompt) for s in steps),
                reply_characters=sum(len(s.reply) for s in steps),
                device_s=device_s or 0.0,
                job_s=result.seconds,
                fallbacks=tuple(s.fallback for s in steps if s.fallback),
                replay_differences=_differences(session, name),
            )


def _differences(session: Session, name: str) -> tuple[str, ...]:
    """What a replay finds, and where it finds anything the trials that it went by."""
    found = replay(session, name, {}).differences
    if not found:
        return ()
    query = select(TrialRow.number, TrialRow.candidate_id, TrialRow.task_id, TrialRow.objective)
    rows = session.execute(query.where(TrialRow.job_id == name).order_by(TrialRow.number)).all()
    return (*found, *(f"trial {n} of {c} in {t}: {o}" for n, c, t, o in rows))
