"""The worker: `warpsmith worker`; `python -m worker.main` is that of the embedded service.

Finds the devices of this machine, registers, and keeps one Celery pool for `control` and `agents` and one per
device. This process runs the maintenance loop; it never loads a device library.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from db.admin.program_version import VERSION
from db.engine import Database, open_database
from db.identifiers import new_id
from db.message_names import AGENT_QUEUE, CONTROL_QUEUE, WEBHOOK_QUEUE
from db.queue.broker import Notifier
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from warpsmith import logs
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.language import languages
from warpsmith.errors import StorageUnusable, Unavailable, WarpsmithError
from warpsmith.processes.parent_death import die_with_parent
from warpsmith.processes.root_user import refuse_root, warn_of_root
from warpsmith.settings import Settings, settings
from warpsmith.system.storage_errors import cause_of
from warpsmith.system.temporary_folder import temporary_folder
from worker.stop_request import StopRequest
from worker.supervision.maintenance_loop import MaintenanceLoop
from worker.supervision.pool_plans import (
    ALL_COMPILERS,
    ALL_DEVICES,
    PoolPlan,
    compilers_missing,
    plan_pools,
)
from worker.supervision.supervisor import TICK_S, PoolStarter, Supervisor
from worker.supervision.watchdog import Watchdog

STOP_S = 15.0
"""Seconds that pools may take to end their slices before they are killed."""
EMBEDDED_STOP_S = 4.0
"""`STOP_S` if a user waits at a terminal; interrupted work is done again by the same command."""
SCHEMA_WAIT_S = 30.0

log = logging.getLogger(__name__)


@temporary_folder()
def run(
    queues: Sequence[str] = (),
    *,
    embedded: bool = False,
    concurrency: int = 0,
    pool_module: str = "worker.pool",
    devices: Sequence[DeviceInfo] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT or, if embedded, until the parent ends.

    Args:
        queues: queues to serve; empty: all that this machine can.
        concurrency: processes for queues that need no device; 0: two.
        pool_module: module whose `main` runs one pool.
        devices: devices; None: found by probing every back end.

    Raises:
        Unavailable: the database is unavailable or has another schema, nothing can be served, or this process
            is root, which is not allowed.
    """
    current = settings()
    if embedded:
        warn_of_root(current.allow_root)
    else:
        refuse_root(current.allow_root)
    stop = StopRequest()
    stop.stop_on_signals()
    parent = os.getppid()
    if embedded:
        die_with_parent(signal.SIGTERM)
    # Its imports go on while this process waits and probes.
    starter = PoolStarter(pool_module)
    try:
        _wait_for_schema(current, stop)
        unavailable: dict[str, str] = {}
        if devices is None:
            devices, unavailable = _probe(current.replay_dir)
        wanted = tuple(queues) or _everything(devices)
        missing = compilers_missing() if ALL_COMPILERS in wanted else {}
        plans = plan_pools(wanted, devices, concurrency, current.compile_workers, missing)
        unavailable |= missing
        _serve(current, plans, unavailable, starter, stop, parent if embedded else None)
    finally:
        starter.close()


def _serve(
    current: Settings,
    plans: Sequence[PoolPlan],
    unavailable: dict[str, str],
    starter: PoolStarter,
    stop: StopRequest,
    parent: int | None,
) -> None:
    worker_id = new_id()
    database = open_database(current)
    notifier = Notifier(current)
    maintenance = MaintenanceLoop(current, database, notifier, worker_id)
    pools = Supervisor(plans, worker_id, starter)
    watchdog = Watchdog(pools, notifier, database, worker_id)
    devices = [plan.device for plan in plans if plan.device is not None]
    queues = [queue for plan in plans for queue in plan.queues]
    slots = sum(plan.compile_slots for plan in plans)

    try:
        pools.keep_running()
        with database.write() as session:
            workers = WorkerRepository(session)
            host = os.uname().nodename
            workers.register(worker_id, host, os.getpid(), VERSION, queues, devices, unavailable)
            workers.offer_compilations(worker_id, slots)
        here = {d.backend for d in devices}
        maintenance.begin(sorted(la.name for la in languages().values() if not here.isdisjoint(la.devices)))
        log.info("worker %s serves %s", worker_id, ", ".join(queues))
        _tick_until_stopped(pools, watchdog, maintenance, stop, parent)
    finally:
        try:
            with database.write() as session:
                WorkerRepository(session).stop(worker_id)
        except DBAPIError as exc:
            database.waits("the end of this worker", exc)
        pools.stop(STOP_S if parent is None else EMBEDDED_STOP_S, lambda: _holds_nothing(database, worker_id))
        try:
            maintenance.end()
        except DBAPIError as exc:
            log.warning("tasks return when their leases run out: %s", cause_of(exc))
        notifier.close()
        database.dispose()


def _tick_until_stopped(
    pools: Supervisor, watchdog: Watchdog, maintenance: MaintenanceLoop, stop: StopRequest, parent: int | None
) -> None:
    while not stop.wait(TICK_S):
        if parent is not None and os.getppid() != parent:
            log.info("the parent has ended")
            break
        pools.needs_threads = maintenance.has_webhooks
        pools.keep_running()
        watchdog.tick()
        maintenance.tick()
        if maintenance.draining:
            log.info("worker %s was told to go", pools.worker_id)
            break
    if stop.signum is not None:
        log.info("stopping on %s", stop.signum.name)


def _holds_nothing(database: Database, worker_id: str) -> bool:
    try:
        with database.read() as session:
            return not TaskRepository(session).held_by(worker_id)
    except DBAPIError:
        return False


def _wait_for_schema(current: Settings, stop: StopRequest) -> None:
    """Wait for the schema: a migration may have started at the same time, and older workers may be about to
    end.

    Raises:
        StorageUnusable: no waiting can help.
        Unavailable: the database is away, its schema does not fit, or workers of another version are
            at work, after `SCHEMA_WAIT_S`.
    """
    # Alembic is slow to import; the imports of the pools have begun by now.
    from db import migrate

    deadline = time.monotonic() + SCHEMA_WAIT_S
    while True:
        try:
            migrate.require_current(current.sqlalchemy_url)
            _require_same_version(current)
            return
        except StorageUnusable:
            raise
        except DBAPIError as exc:
            problem = Unavailable(f"the database does not answer: {cause_of(exc)}")
        except Unavailable as exc:
            problem = exc
        if time.monotonic() > deadline or stop.wait(0.5):
            raise problem


def _require_same_version(current: Settings) -> None:
    """Check the version, since programs of two versions would misread each other's rows.

    Raises:
        Unavailable: a living worker has another version; the message says which, and what to do.
    """
    database = open_database(current)
    try:
        with database.read() as session:
            other = WorkerRepository(session).other_version(VERSION)
    finally:
        database.dispose()
    if other is not None:
        raise Unavailable(
            f"this worker is of version {VERSION}, but worker {other.id} on {other.hostname} is of version "
            f"{other.version}: stop that one (`warpsmith drain {other.id}`), or start this one's version"
        )


def _probe(replay_dir: Path | None) -> tuple[Sequence[DeviceInfo], dict[str, str]]:
    """Devices of this machine; only the recorded ones if recorded timings are served."""
    if replay_dir is not None:
        from warpsmith.backends import replay

        return replay.probe(replay_dir), {}
    from warpsmith.sandbox import probe_devices

    probe = probe_devices()
    missing = dict(probe.unavailable)
    for language in languages().values():
        if any(d.backend in language.devices for d in probe.devices) and (lacking := language.lacking()):
            missing[language.name] = lacking
    return probe.devices, missing


def _everything(devices: Sequence[DeviceInfo]) -> tuple[str, ...]:
    light = (CONTROL_QUEUE, AGENT_QUEUE, WEBHOOK_QUEUE)
    return (*light, ALL_DEVICES) if devices else light


def main() -> int:
    """Run the embedded service's worker, with the settings of `WARPSMITH_*`."""
    logs.configure()
    try:
        run(embedded=True)
    except WarpsmithError as exc:
        log.error("%s", exc)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
