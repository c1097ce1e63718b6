"""Registry of the latest verified configuration for each shape of a kernel on a device class."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import literal, select
from sqlalchemy.orm import Session

from db.engine import clock
from db.tables import RegistryRow
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.tuning.lessons.lesson import Lesson

MOST_ROWS = 2000
"""Limit on the rows of one answer."""


class RegistryRepository:
    """Queries on the `registry` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: str, tenant: str, lesson: Lesson) -> None:
        """Keep what serves the workloads of a job, in place of what served them before."""
        kernel = fingerprint(lesson.job.kernel)
        for served in lesson.served:
            self._session.merge(
                RegistryRow(
                    tenant=tenant,
                    kernel=kernel,
                    device_class=lesson.device_class,
                    workload=served.workload,
                    chip=lesson.device.chip,
                    name=lesson.job.name,
                    device=lesson.device.name,
                    driver=lesson.device.driver,
                    job_id=job_id,
                    attempt=served.attempt,
                    configuration=served.configuration,
                    speedup=served.speedup,
                    verified_at=clock(self._session),
                )
            )

    def of(
        self, kernels: Sequence[str], device: str | None = None, workloads: Sequence[str] = ()
    ) -> Sequence[RegistryRow]:
        """Rows of these kernels, newest first: those of a tenant's session, or of all tenants.

        Args:
            kernels: fingerprints; empty: of all kernels.
            device: device class; None: all. Rows of the same device under another driver come too.
            workloads: keys; empty: all.
        """
        wanted: list[Any] = [RegistryRow.kernel.in_(kernels)] if kernels else []
        if workloads:
            wanted.append(RegistryRow.workload.in_(workloads))
        if device is not None:
            wanted.append(literal(device).like(RegistryRow.chip + "%"))
        query = select(RegistryRow).where(*wanted)
        query = query.order_by(RegistryRow.verified_at.desc(), RegistryRow.workload).limit(MOST_ROWS)
        return self._session.scalars(query).all()
