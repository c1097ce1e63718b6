"""Resources of a pool process, created once per process after the fork."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from db.engine import Database, open_database
from db.identifiers import new_id
from db.queue.broker import Notifier
from warpsmith.domain.device import DeviceInfo
from warpsmith.errors import Unavailable
from warpsmith.settings import Settings, settings
from warpsmith.tuning.ports import CompilerPort
from worker.device.cached_references import JobSeeds
from worker.device.device_setup import DeviceSetup, open_setup
from worker.device.fleet_compiler import FleetCompiler
from worker.device.pool_environment import POOL_DEVICE, WORKER_ID


@dataclass
class Context:
    """Settings, database, notifier, the device if this pool has one, and seeds of jobs on it."""

    settings: Settings
    database: Database
    notifier: Notifier
    worker_id: str = field(default_factory=new_id)
    setup: DeviceSetup | None = None
    seeds: JobSeeds = field(default_factory=JobSeeds)
    end_process: Callable[[int], object] = os._exit
    """Ends this process without waiting for any thread; another one takes its place."""

    def device_setup(self) -> DeviceSetup:
        """The setup of this pool's device.

        Raises:
            Unavailable: this pool has no device; the task was sent to the wrong queue.
        """
        if self.setup is None:
            raise Unavailable("this pool has no device")
        return self.setup


_contexts: dict[int, Context] = {}
_making = threading.Lock()


def context() -> Context:
    """The context of this process."""
    pid = os.getpid()
    with _making:
        if pid not in _contexts:
            _contexts.clear()
            _contexts[pid] = _make()
        return _contexts[pid]


def _make() -> Context:
    current = settings()
    database, notifier = open_database(current), Notifier(current)
    return Context(
        settings=current,
        database=database,
        notifier=notifier,
        worker_id=os.environ.get(WORKER_ID) or new_id(),
        setup=_setup(current, database, notifier),
    )


def _setup(current: Settings, database: Database, notifier: Notifier) -> DeviceSetup | None:
    found = os.environ.get(POOL_DEVICE)
    if not found:
        return None
    device = DeviceInfo.model_validate_json(found)

    def fleet(here: CompilerPort, width: int) -> FleetCompiler:
        return FleetCompiler(here, width, device, database, notifier.notify)

    return open_setup(current, device, fleet)
