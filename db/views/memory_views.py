"""Response bodies of the registry and of lessons, read from the tables."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from db.repositories.memory.lessons import LessonRepository
from db.repositories.memory.registry import MOST_ROWS, RegistryRepository
from warpsmith.http_models import JobLesson, JobLessonPage, RegistryEntry, RegistryList


def registry_list(
    session: Session, kernels: Sequence[str], device_class: str | None, workloads: Sequence[str]
) -> RegistryList:
    """Registry entries that serve workloads of these kernels, newest first."""
    rows = RegistryRepository(session).of(kernels, device_class, workloads)
    return RegistryList(
        items=tuple(
            RegistryEntry(
                kernel=row.kernel,
                name=row.name,
                device_class=row.device_class,
                device=row.device,
                driver=row.driver,
                workload=row.workload,
                speedup=row.speedup,
                attempt=row.attempt,
                configuration=row.configuration,
                job=row.job_id,
                verified_at=row.verified_at,
                stale=device_class is not None and row.device_class != device_class,
            )
            for row in rows
        ),
        truncated=len(rows) == MOST_ROWS,
    )


def lesson_page(session: Session, job_id: str | None, after: str | None, limit: int) -> JobLessonPage:
    """Page of the lessons of finished jobs, oldest first."""
    found = LessonRepository(session).page(job_id, after, limit + 1)
    items = tuple(JobLesson(job=job, lesson=lesson) for job, lesson in found[:limit])
    return JobLessonPage(items=items, next=items[-1].job if len(found) > limit else None)
