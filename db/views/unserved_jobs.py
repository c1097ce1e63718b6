"""Finds out whether any worker can serve a job, and if not, the workers' reasons."""

from sqlalchemy.orm import Session

from db.engine import now
from db.message_names import device_queue
from db.repositories.workers import WorkerRepository
from db.tables import JobRow, WorkerRow
from warpsmith.domain.device import Backend, lacking
from warpsmith.tuning.decisions.unserved_jobs import Unserved

NO_DEVICE = "it serves no such device"
PUT_ASIDE = "put aside: "
"""Prefix of a device's fault."""


def unserved(session: Session, job: JobRow, limit_s: float) -> Unserved | None:
    """Capabilities that workers lack for a job; None if one can serve it.

    Args:
        limit_s: see `Unserved.limit_s`.
    """
    workers = WorkerRepository(session)
    alive = workers.alive()
    offered = {d.device_class for w in alive for d in w.devices}
    if job.device_class is None:
        runs_on = Backend(job.backend).runs_on
        able = {d.backend for w in alive if job.backend not in w.unavailable for d in w.devices}
        served, needs = not able.isdisjoint(runs_on), f"back end {job.backend}"
    else:
        served, needs = job.device_class in offered, f"device class {job.device_class}"
    if served:
        return None
    lacking: dict[str, list[str]] = {}
    # One that was told to go says nothing of what is here after it.
    for worker in (w for w in alive if not w.draining):
        lacking.setdefault(_reason(worker, job), []).append(worker.hostname)
    times = [job.created_at, *(w.started_at for w in alive[-1:])]
    if job.device_class is not None:
        last = workers.last_seen_with(device_queue(job.device_class))
        times += [] if last is None else [last]
    at = now(session)
    return Unserved(needs, lacking, max(0.0, (at - max(times)).total_seconds()), limit_s)


def _reason(worker: WorkerRow, job: JobRow) -> str:
    if job.backend in worker.unavailable:
        return lacking(worker.unavailable, Backend(job.backend)).removeprefix(f"{job.backend}: ")
    aside = [f"{PUT_ASIDE}{fault}" for fault in worker.device_faults.values()]
    others = sorted({d.device_class for d in worker.devices if d.backend in Backend(job.backend).runs_on})
    return aside[0] if aside else f"it has {', '.join(others)}" if others else NO_DEVICE
