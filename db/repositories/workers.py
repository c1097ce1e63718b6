"""Workers and their capabilities."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.engine import clock
from db.tables import WorkerRow
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.errors import NotFound

ALIVE_S = 15.0
"""Seconds without a heartbeat after which a worker counts as gone."""
SHOWN_S = 3600.0
RECENT = 1000
"""Number of latest workers among which one that served a queue is searched."""
FAULT_CHARACTERS = 1000
"""Characters of a device's fault that are stored, at most."""


class WorkerRepository:
    """Queries on the `worker` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def register(
        self,
        worker_id: str,
        hostname: str,
        pid: int,
        version: str,
        queues: Sequence[str],
        devices: Sequence[DeviceInfo],
        unavailable: dict[str, str],
    ) -> WorkerRow:
        """Register a started worker."""
        at = clock(self._session)
        row = WorkerRow(
            id=worker_id,
            hostname=hostname,
            pid=pid,
            version=version,
            queues=tuple(queues),
            devices=tuple(devices),
            unavailable=unavailable,
            device_faults={},
            draining=False,
            compile_slots=0,
            last_seen=at,
            started_at=at,
        )
        self._session.add(row)
        self._session.flush()
        return row

    def offer_compilations(self, worker_id: str, slots: int) -> None:
        """Set the number of concurrent compilations that a worker offers to others."""
        query = update(WorkerRow).where(WorkerRow.id == worker_id)
        self._session.execute(query.values(compile_slots=slots))

    def heartbeat(self, worker_id: str) -> None:
        """Record that the worker is alive."""
        query = update(WorkerRow).where(WorkerRow.id == worker_id)
        self._session.execute(query.values(last_seen=clock(self._session)))

    def stop(self, worker_id: str) -> None:
        """Record that the worker stops regularly."""
        query = update(WorkerRow).where(WorkerRow.id == worker_id)
        self._session.execute(query.values(stopped_at=clock(self._session)))

    def drain(self, worker_id: str) -> WorkerRow:
        """Ask the worker to finish its current task, take nothing more, and stop.

        Raises:
            NotFound: no running worker has that id.
        """
        row = self._session.get(WorkerRow, worker_id, with_for_update=True)
        if row is None or row.stopped_at is not None:
            raise NotFound(f"no worker {worker_id} is at work; `warpsmith workers` lists them")
        # Searches no longer count on its devices.
        row.devices = ()
        row.draining = True
        return row

    def other_version(self, version: str) -> WorkerRow | None:
        """A living worker of another version; None if there is none."""
        return next((w for w in self.seen_lately(ALIVE_S) if w.version != version), None)

    def put_aside(self, worker_id: str, device: DeviceInfo, reason: str) -> None:
        """Record the fault of a device; the worker no longer offers it."""
        row = self._session.get(WorkerRow, worker_id, with_for_update=True)
        if row is not None:
            row.devices = tuple(d for d in row.devices if d.uid != device.uid)
            row.device_faults = row.device_faults | {device.uid: reason[:FAULT_CHARACTERS]}

    def has_put_aside(self, worker_id: str, device: DeviceInfo) -> bool:
        """True if that device must no longer be used."""
        query = select(WorkerRow.device_faults).where(WorkerRow.id == worker_id)
        return device.uid in (self._session.execute(query).scalar_one_or_none() or {})

    def of_host(self, hostname: str) -> Sequence[WorkerRow]:
        """Workers of a machine that have not stopped regularly."""
        query = select(WorkerRow).where(WorkerRow.hostname == hostname, WorkerRow.stopped_at.is_(None))
        return self._session.scalars(query).all()

    def is_stopping(self, worker_id: str) -> bool:
        """True once the worker was told to stop."""
        stops = WorkerRow.stopped_at.is_not(None) | WorkerRow.draining
        query = select(stops).where(WorkerRow.id == worker_id)
        return bool(self._session.execute(query).scalar_one_or_none())

    def seen_lately(self, within_s: float = SHOWN_S) -> Sequence[WorkerRow]:
        """Workers seen in the last hour, newest first, without those that stopped regularly."""
        query = select(WorkerRow).where(WorkerRow.last_seen > clock(self._session, -within_s))
        query = query.where(WorkerRow.stopped_at.is_(None)).order_by(WorkerRow.id.desc())
        return self._session.scalars(query.execution_options(populate_existing=True)).all()

    def alive(self) -> Sequence[WorkerRow]:
        """Living workers, newest first."""
        return self.seen_lately(ALIVE_S)

    def last_seen_with(self, queue: str) -> datetime | None:
        """Time at which a worker that served a queue was last seen, even if it is gone; None if there was
        none."""
        query = select(WorkerRow).order_by(WorkerRow.last_seen.desc()).limit(RECENT)
        return next((w.last_seen for w in self._session.scalars(query) if queue in w.queues), None)

    def all_device_classes(self) -> Sequence[str]:
        """Device classes that living workers offer."""
        return sorted({d.device_class for w in self.alive() for d in w.devices})

    def of_backend(self, backend: str) -> Sequence[DeviceInfo]:
        """Devices that living workers offer for a back end."""
        runs_on, alive = Backend(backend).runs_on, self.seen_lately(ALIVE_S)
        return [d for w in alive if backend not in w.unavailable for d in w.devices if d.backend in runs_on]

    def devices(self, device_class: str) -> int:
        """Number of devices of a class that living workers offer; two workers may share one."""
        alive = self.seen_lately(ALIVE_S)
        return len({(w.hostname, d.uid) for w in alive for d in w.devices if d.device_class == device_class})

    def compile_slots(self, queue: str) -> int:
        """Number of concurrent compilations of a queue over all living workers that stay."""
        alive = (w for w in self.seen_lately(ALIVE_S) if not w.draining)
        return sum(w.compile_slots for w in alive if queue in w.queues)
