"""Lessons of finished jobs, found by the likeness of their kernels."""

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session, aliased, undefer

from db.engine import clock
from db.tables import LessonRow
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.tuning.lessons.kernel_likeness import SKETCH_SIZE, likeness, sketch
from warpsmith.tuning.lessons.lesson import Lesson

LEAST_ALIKE = 0.4
"""Likeness below which kernels have little more in common than their language."""
CONSIDERED = 64
"""Limit on the lessons among which device class and age decide."""
_STORED = np.dtype("<u2")


@dataclass(frozen=True)
class AlikeLesson:
    """A lesson, and how much its kernel is like the one that was asked for."""

    lesson: Lesson
    job_id: str
    likeness: float
    is_same_kernel: bool
    created_at: datetime


class LessonRepository:
    """Queries on the `lesson` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: str, tenant: str, lesson: Lesson) -> None:
        """Keep what a job taught, in place of what was kept of it before."""
        kernel = lesson.job.kernel
        self._session.merge(
            LessonRow(
                job_id=job_id,
                tenant=tenant,
                backend=kernel.backend.value,
                device_class=lesson.device_class,
                kernel=fingerprint(kernel),
                sketch=sketch(kernel).astype(_STORED).tobytes(),
                lesson=lesson,
                created_at=clock(self._session),
            )
        )

    def take_over(self, job_id: str, tenant: str, lesson: Lesson) -> tuple[str, bool]:
        """Keep a lesson of another service's job; the id under which it is kept, and whether it is new.

        The id follows from the tenant, so that nobody writes over another's lesson.
        """
        if self._session.scalar(select(LessonRow.tenant).where(LessonRow.job_id == job_id)) == tenant:
            return job_id, False
        kept = hashlib.sha256(f"{tenant}/{job_id}".encode()).hexdigest()[:32]
        new = not self.has(kept)
        if new:
            self.add(kept, tenant, lesson)
        return kept, new

    def page(self, job_id: str | None, after: str | None, limit: int) -> Sequence[tuple[str, Lesson]]:
        """Lessons by id, oldest first: those of a tenant's session, or of all tenants.

        Args:
            job_id: only that of this job.
            after: id of the last lesson of the page before.
        """
        query = select(LessonRow.job_id, LessonRow.lesson).order_by(LessonRow.created_at, LessonRow.job_id)
        if job_id is not None:
            query = query.where(LessonRow.job_id == job_id)
        if after is not None:
            last = aliased(LessonRow)
            place = select(last.created_at).where(last.job_id == after).scalar_subquery()
            query = query.where(
                or_(
                    LessonRow.created_at > place,
                    and_(LessonRow.created_at == place, LessonRow.job_id > after),
                )
            )
        return [(row.job_id, row.lesson) for row in self._session.execute(query.limit(limit))]

    def has(self, job_id: str) -> bool:
        """True if something is kept of this job."""
        return self._session.get(LessonRow, job_id) is not None

    def alike(
        self,
        kernel: Kernel,
        device_class: str,
        tenant: str | None,
        count: int,
        but: str = "",
        before: datetime | None = None,
    ) -> Sequence[AlikeLesson]:
        """Lessons on the same kernel and on kernels like it: the same one first, then the most alike; of
        equal ones those of the device class, then the newest.

        Args:
            tenant: whose lessons; None: everybody's.
            count: most lessons to return.
            but: id of a job whose own lesson is left out.
            before: time after which a lesson is too new; None: now.
        """
        row = LessonRow.__table__.c
        mine = [row.backend == kernel.backend.value, row.job_id != but]
        if tenant is not None:
            mine.append(row.tenant == tenant)
        if before is not None:
            mine.append(row.created_at < before)
        # Of thousands of rows only what is compared is read, newest first, so that a stable order keeps that.
        query = select(row.job_id, row.sketch).where(*mine).order_by(row.created_at.desc())
        rows = self._session.execute(query).all()
        same_ids = select(row.job_id).where(*mine, row.kernel == fingerprint(kernel))
        same = set(self._session.scalars(same_ids.order_by(row.created_at.desc()).limit(CONSIDERED)))
        if not rows:
            return ()
        stored = np.frombuffer(b"".join([r.sketch for r in rows]), dtype=_STORED)
        alike = likeness(sketch(kernel), stored.reshape(-1, SKETCH_SIZE))
        ones = [int(n) for n in np.flatnonzero(alike == 1)] if same else []
        places = {rows[n].job_id: n for n in ones}
        first = np.argsort(-alike, kind="stable")[:CONSIDERED]
        near = {rows[n].job_id: float(alike[n]) for n in first if alike[n] >= LEAST_ALIKE}
        near |= {job_id: float(alike[places[job_id]]) for job_id in same if job_id in places}
        return self._best(near, same, device_class, count)

    def _best(
        self, near: Mapping[str, float], same: Set[str], device_class: str, count: int
    ) -> Sequence[AlikeLesson]:
        query = select(LessonRow).where(LessonRow.job_id.in_(list(near)))
        rows = sorted(
            self._session.scalars(query),
            key=lambda r: (
                r.job_id not in same,
                -near[r.job_id],
                r.device_class != device_class,
                -r.created_at.timestamp(),
            ),
        )[:count]
        lessons = self._lessons([r.job_id for r in rows])
        return [
            AlikeLesson(lessons[r.job_id], r.job_id, near[r.job_id], r.job_id in same, r.created_at)
            for r in rows
        ]

    def of_jobs(self, kernel: Kernel, ids: Sequence[str]) -> Sequence[AlikeLesson]:
        """The lessons of these jobs that still exist, in this order, and how much each is like a kernel."""
        query = select(LessonRow).where(LessonRow.job_id.in_(ids)).options(undefer(LessonRow.lesson))
        rows = {row.job_id: row for row in self._session.scalars(query)}
        own, key = sketch(kernel), fingerprint(kernel)
        found = []
        for row in (rows[job_id] for job_id in ids if job_id in rows):
            stored = np.frombuffer(row.sketch, dtype=_STORED).reshape(1, SKETCH_SIZE)
            alike = float(likeness(own, stored)[0])
            found.append(AlikeLesson(row.lesson, row.job_id, alike, row.kernel == key, row.created_at))
        return found

    def _lessons(self, ids: Sequence[str]) -> dict[str, Lesson]:
        query = select(LessonRow.job_id, LessonRow.lesson).where(LessonRow.job_id.in_(ids))
        return {row.job_id: row.lesson for row in self._session.execute(query)}
