"""Winners of a job's other candidates and of earlier jobs, as first proposals for a new candidate."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.memory.lessons import LessonRepository
from db.repositories.search_histories import HistoryRepository, Told
from db.repositories.tasks import TaskRepository
from db.tables import CandidateRow
from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.search.searchers.warm_starts import STARTS, onto, starts_from
from warpsmith.tuning.tasks import StepPayload

HISTORIES = 4
"""Limit on the candidates considered: the parent, then the newest."""
LESSONS = 3
"""Limit on the earlier jobs considered."""
SETTLED_IN = 12
"""Number of trials after which a search needs no first proposals any more."""


def earlier_starts(
    session: Session,
    candidate: CandidateRow,
    finished: int,
    remembers: bool = True,
    of_all_tenants: bool = False,
) -> Sequence[Configuration]:
    """Winners of the template that this one mends, of the job's other candidates, of earlier jobs on this
    kernel or one like it, in this candidate's parameters.

    Args:
        finished: finished trials of this candidate so far.
        remembers: False: earlier jobs are left out.
        of_all_tenants: True: earlier jobs of other tenants count too.
    """
    if finished >= SETTLED_IN:
        return ()
    step = TaskRepository(session).get(candidate.made_by)
    mended = step.payload.rejected if isinstance(step.payload, StepPayload) else None
    others = [c for c in CandidateRepository(session).of_job(candidate.job_id) if c.id != candidate.id]
    others = sorted((c for c in others if c.measured), key=lambda c: (c.id != candidate.parent, -c.number))
    history = HistoryRepository(session)
    own = [] if mended is None else _shared(history.of(mended), candidate.template.space)
    histories = [history.of(other.id) for other in others[:HISTORIES]]
    if remembers:
        histories += _remembered(session, candidate, of_all_tenants)
    space = candidate.template.space
    return own + starts_from([[(onto(space, c), value) for c, value in told] for told in histories if told])


def _shared(told: Sequence[Told], space: Space) -> list[Configuration]:
    """The best configurations of a template that its mended form has as well, best first."""
    measured = sorted((one for one in told if one[1] is not None), key=lambda one: one[1] or 0.0)
    return [c for c, _ in measured if onto(space, c) == c][:STARTS]


def _remembered(session: Session, candidate: CandidateRow, of_all_tenants: bool) -> list[list[Told]]:
    """Configurations of earlier jobs in parameters that this candidate has, the most similar kernel first.

    Of each job the candidate counts that has most of these parameters; of such the fastest.
    """
    row = JobRepository(session).get(candidate.job_id, with_spec=True)
    if row.device_class is None:
        return []
    found = LessonRepository(session).alike(
        row.spec.kernel,
        row.device_class,
        None if of_all_tenants else row.tenant,
        LESSONS,
        but=candidate.job_id,
    )
    names = {p.name for p in candidate.template.space.parameters}
    histories: list[list[Told]] = []
    for lesson in (f.lesson for f in found):
        known = [
            (len(names & {p.name for p in a.template.space.parameters}), -number, a)
            for number, a in enumerate(lesson.attempts)
            if a.best
        ]
        shared, _, attempt = max(known, key=lambda k: k[:2], default=(0, 0, None))
        if shared and attempt is not None:
            histories.append([(c, value) for c, value in attempt.best])
    return histories
