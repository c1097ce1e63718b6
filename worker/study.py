"""Keeps the stored Optuna study of a candidate equal to its finished trials."""

import fcntl
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from optuna.exceptions import StorageInternalError
from sqlalchemy import text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from db.engine import Database, normal_url
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TrialRow
from warpsmith.domain.outcome import Rejected
from warpsmith.search.optuna_study import FinishedTrial, export
from worker.context import Context

LOCK_FILES = 16
"""Without Postgres all workers are on one machine, and a few files are locks enough."""

log = logging.getLogger(__name__)


def export_study(context: Context, job_id: str, candidate: CandidateRow, *, wait: bool = True) -> None:
    """Append what the study lacks. A study that cannot be written now is caught up by the next call.

    Args:
        wait: for another process that writes this study; else leave it to that one and to later calls.
    """
    name = ""
    try:
        with _alone(context.database, candidate.id, wait) as mine:
            if not mine:
                return
            with context.database.read() as session:
                trials = [_trial(row) for row in TrialRepository(session).finished(candidate.id)]
                device_class = JobRepository(session).get(job_id).device_class
            url = _patient(normal_url(context.settings.sqlalchemy_url)).render_as_string(hide_password=False)
            name = f"{candidate.id}/{device_class}"
            export(url, name, candidate.template.space, trials)
    except (SQLAlchemyError, StorageInternalError) as exc:
        log.warning("the study %s waits for the database: %s", name, type(exc).__name__)


def export_later(context: Context, job_id: str, candidate: CandidateRow) -> None:
    """After a slice. While a study is written, a device of its own need not wait; the host's cores would
    be disturbed, so there it is done at once."""
    if context.device_workshop().tools.opener.info.shares_host:
        export_study(context, job_id, candidate, wait=False)
        return
    if candidate.id in _waiting:
        return
    _waiting.add(candidate.id)

    def run() -> None:
        _waiting.discard(candidate.id)
        export_study(context, job_id, candidate, wait=False)

    _thread(os.getpid()).submit(run)


_waiting: set[str] = set()
"""Candidates whose study is to be written by this process."""


@lru_cache(maxsize=1)
def _thread(_pid: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="study")


@contextmanager
def _alone(database: Database, candidate: str, wait: bool) -> Iterator[bool]:
    """True in the block where no other process writes this study; two would append the same trials."""
    if database.engine.dialect.name == "postgresql":
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            name = {"name": f"study {candidate}"}
            key = "hashtextextended(:name, 0)"
            if wait:
                connection.execute(text(f"SELECT pg_advisory_lock({key})"), name)
            elif not connection.execute(text(f"SELECT pg_try_advisory_lock({key})"), name).scalar_one():
                yield False
                return
            try:
                yield True
            finally:
                connection.execute(text(f"SELECT pg_advisory_unlock({key})"), name)
        return
    number = int(hashlib.sha256(candidate.encode()).hexdigest(), 16) % LOCK_FILES
    path = Path(tempfile.gettempdir()) / f"warpsmith-study-{os.getuid()}-{number}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        mine = _locked(descriptor, wait)
        yield mine
    finally:
        os.close(descriptor)


def _locked(descriptor: int, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _patient(url: URL) -> URL:
    """What a crash of the server forgets of a study is appended again, so nothing waits for the disk."""
    if url.get_backend_name() != "postgresql":
        return url
    return url.update_query_dict({"options": "-c synchronous_commit=off"})


def _trial(row: TrialRow) -> FinishedTrial:
    reason = row.outcome.reason if isinstance(row.outcome, Rejected) else ""
    return FinishedTrial(row.number, row.configuration, row.objective, reason)
