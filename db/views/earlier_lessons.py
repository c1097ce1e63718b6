"""Lessons of earlier jobs for an agent step."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.jobs import JobRepository
from db.repositories.memory.lessons import AlikeLesson, LessonRepository
from db.tables import JobRow
from warpsmith.tuning.step_facts import Earlier
from warpsmith.tuning.tasks import StepPayload

ROLES = ("planner", "templater", "repairer")
"""Roles that are told of earlier jobs."""
MOST_TOLD = 3
"""Limit on the earlier jobs that a step is told of."""


def earlier_lessons(
    session: Session, job_id: str, payload: StepPayload, of_all_tenants: bool = False
) -> Sequence[Earlier]:
    """Lessons that a new step is told of; none for a role or a job that has no use for them.

    A job learns from those that ended before it was measured, so that all of its steps are told the same.

    Raises:
        NotFound: no job has that id.
    """
    row = JobRepository(session).get(job_id, with_spec=True)
    if payload.role not in ROLES or row.device_class is None or row.started_at is None:
        return ()
    tenant = None if of_all_tenants else row.tenant
    found = LessonRepository(session).alike(
        row.spec.kernel, row.device_class, tenant, MOST_TOLD, but=job_id, before=row.started_at
    )
    return as_told(row, found)


def as_told(row: JobRow, found: Sequence[AlikeLesson]) -> Sequence[Earlier]:
    """Lessons in the form in which a step of the job is told of them."""
    return [
        Earlier(
            job_id=f.job_id,
            lesson=f.lesson,
            likeness=f.likeness,
            is_same_kernel=f.is_same_kernel,
            is_same_device_class=f.lesson.device_class == row.device_class,
        )
        for f in found
    ]
