"""Keeps the stored Optuna study of a candidate equal to its finished trials."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from db.engine import normal_url
from db.named_lock import alone
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TrialRow
from warpsmith.domain.templates.outcome import CutShort, Rejected
from worker.device.process_context import Context

if TYPE_CHECKING:
    from warpsmith.search.searchers.stored_study import StudyTrial


def export_study(context: Context, job_id: str, candidate: CandidateRow, *, wait: bool = True) -> None:
    """Append the missing trials to the study. If it cannot be written now, the next call catches up.

    Args:
        wait: wait for another process that writes this study; else leave it to that process and to later
            calls.
    """
    # A pool that writes no study does without Optuna.
    from optuna.exceptions import StorageInternalError

    from warpsmith.search.searchers.stored_study import export

    name = ""
    try:
        with alone(context.database, "study", candidate.id, wait=wait) as mine:
            if mine is None:
                return
            with context.database.read() as session:
                trials = [_trial(row) for row in TrialRepository(session).finished(candidate.id)]
                device_class = JobRepository(session).get(job_id).device_class
            url = _patient(normal_url(context.settings.sqlalchemy_url)).render_as_string(hide_password=False)
            name = f"{candidate.id}/{device_class}"
            export(url, name, candidate.template.space, trials)
    except (SQLAlchemyError, StorageInternalError) as exc:
        context.database.waits(f"the study {name}", exc)


def export_later(context: Context, job_id: str, candidate: CandidateRow) -> None:
    """Export the study after a slice, in the background if the device has its own memory. The host's cores
    would be disturbed, so there it is done at once."""
    if context.device_setup().ports.opener.info.shares_host:
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
"""Candidates whose study this process still has to write."""


@lru_cache(maxsize=1)
def _thread(_pid: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="study")


def _patient(url: URL) -> URL:
    """The URL with asynchronous commits: trials lost in a server crash are appended again."""
    if url.get_backend_name() != "postgresql":
        return url
    return url.update_query_dict({"options": "-c synchronous_commit=off"})


def _trial(row: TrialRow) -> "StudyTrial":
    from warpsmith.search.searchers.stored_study import StudyTrial

    reason = row.outcome.reason if isinstance(row.outcome, Rejected) else ""
    pruned = isinstance(row.outcome, CutShort)
    return StudyTrial(row.number, row.configuration, row.objective, reason, pruned)
