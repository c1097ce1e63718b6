"""Deletes jobs that ended long ago, with everything that belongs to them: `warpsmith prune`."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from db.admin.reachable import operated
from db.engine import clock
from db.tables import CandidateRow, JobRow, RegistryRow
from db.views.metrics import keep_counts
from warpsmith.domain.state import JobState
from warpsmith.settings import Settings

AT_ONCE = 20
"""Jobs per transaction, so that nobody waits long for a lock."""
_COUNTS = select(func.count(), func.coalesce(func.sum(JobRow.trials_done), 0))


@dataclass
class Pruned:
    """Numbers of what was deleted, or would be."""

    jobs: int = 0
    trials: int = 0
    studies: int = 0
    kept: int = 0
    """Jobs as old that stay, because the registry has winners of them."""


def prune(
    older_than_s: float, tenant: str, *, winners: bool, dry_run: bool, current: Settings | None = None
) -> Pruned:
    """Delete jobs that ended before then; lessons and the registry's rows outlive them.

    Args:
        tenant: whose jobs; empty: everybody's.
        winners: delete jobs too of which the registry has winners.
    """
    done = Pruned()
    with operated(current) as database:
        with database.read() as session:
            ended: list[ColumnElement[bool]] = [JobRow.finished_at < clock(session, -older_than_s)]
            ended.append(JobRow.state.in_([s for s in JobState if s.is_terminal]))
            ended += [JobRow.tenant == tenant] if tenant else []
            won = JobRow.id.in_(select(RegistryRow.job_id))
            chosen = ended if winners else [*ended, ~won]
            done.kept = 0 if winners else session.execute(_COUNTS.where(*ended, won)).one()[0]
            if dry_run:
                done.jobs, done.trials = session.execute(_COUNTS.where(*chosen)).one()
                return done
        query = select(JobRow.id).where(*chosen).order_by(JobRow.id).limit(AT_ONCE)
        while True:
            with database.write() as session:
                job_ids = session.scalars(query.with_for_update(skip_locked=True)).all()
                if not job_ids:
                    return done
                _delete(session, list(job_ids), done)


def _delete(session: Session, job_ids: list[str], done: Pruned) -> None:
    from warpsmith.search.searchers.stored_study import delete_studies

    mine = JobRow.id.in_(job_ids)
    keep_counts(session, job_ids)
    study = CandidateRow.id + "/" + JobRow.device_class
    names = session.scalars(select(study).join(JobRow, JobRow.id == CandidateRow.job_id).where(mine)).all()
    done.jobs += len(job_ids)
    done.trials += session.execute(_COUNTS.where(mine)).one()[1]
    done.studies += delete_studies(session, names)
    # Foreign keys take everything else with it.
    session.execute(delete(JobRow).where(mine))
