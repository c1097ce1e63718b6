"""Keeps the stored Optuna study of a candidate equal to its finished trials."""

import logging

from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError

from db.engine import normal_url
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TrialRow
from warpsmith.domain.outcome import Rejected
from warpsmith.search.optuna_study import FinishedTrial, export
from worker.context import Context

log = logging.getLogger(__name__)


def export_study(context: Context, job_id: str, candidate: CandidateRow) -> None:
    """Append what the study lacks. A study that cannot be written now is caught up by the next call."""
    with context.database.read() as session:
        trials = [_trial(row) for row in TrialRepository(session).finished(candidate.id)]
        device_class = JobRepository(session).get(job_id).device_class
    url = normal_url(context.settings.sqlalchemy_url).render_as_string(hide_password=False)
    name = f"{candidate.id}/{device_class}"
    try:
        export(url, name, candidate.template.space, trials)
    except (SQLAlchemyError, StorageInternalError) as exc:
        log.warning("the study %s waits for the database: %s", name, type(exc).__name__)


def _trial(row: TrialRow) -> FinishedTrial:
    reason = row.outcome.reason if isinstance(row.outcome, Rejected) else ""
    return FinishedTrial(row.number, row.configuration, row.objective, reason)
