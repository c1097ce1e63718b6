"""Winners of a job's other candidates, as first proposals for a new one."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.search_histories import HistoryRepository
from db.tables import CandidateRow
from warpsmith.domain.space import Configuration
from warpsmith.search.warm_starts import onto, starts_from

HISTORIES = 4
"""Limit on the candidates considered: the parent, then the newest."""
SETTLED_IN = 12
"""Number of trials after which a search needs no first proposals any more."""


def earlier_starts(session: Session, candidate: CandidateRow, finished: int) -> Sequence[Configuration]:
    """Winners of the job's other candidates, in this candidate's parameters.

    Args:
        finished: finished trials of this candidate so far.
    """
    if finished >= SETTLED_IN:
        return ()
    others = [c for c in CandidateRepository(session).of_job(candidate.job_id) if c.id != candidate.id]
    others = sorted((c for c in others if c.measured), key=lambda c: (c.id != candidate.parent, -c.number))
    history = HistoryRepository(session)
    space = candidate.template.space
    return starts_from(
        [
            [(onto(space, configuration), value) for configuration, value in history.of(other.id)]
            for other in others[:HISTORIES]
        ]
    )
