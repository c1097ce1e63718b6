"""The processes of a worker: one Celery pool per plan, and stand-ins while the broker is silent."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from warpsmith.parent_death import PARENT
from worker.pool_environment import COMPILE_DEVICES, DEVICES, POOL_DEVICE, WORKER_ID
from worker.pool_plans import PoolPlan

TICK_S = 0.05
RESTART_S = 1.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Thread limits: a searcher's matrices are small, and concurrent pools with many threads slow each other
down."""

log = logging.getLogger(__name__)


class Supervisor:
    """Starts the pools, restarts those that end by themselves, and stops them."""

    def __init__(self, plans: Sequence[PoolPlan], worker_id: str, pool_module: str) -> None:
        self.plans = plans
        self._worker_id = worker_id
        self._module = pool_module
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._direct: dict[str, subprocess.Popen[bytes]] = {}
        self._ended_at: dict[str, float] = {}
        self._retired: list[subprocess.Popen[bytes]] = []

    def keep_running(self) -> None:
        """Start missing pools; one that has just ended waits a moment."""
        for plan in self.plans:
            process = self._running.get(plan.name)
            if process is not None and process.poll() is None:
                continue
            if process is not None:
                log.error("pool %s ended with status %s", plan.name, process.returncode)
                del self._running[plan.name]
                self._ended_at[plan.name] = time.monotonic()
            if time.monotonic() - self._ended_at.get(plan.name, -RESTART_S) >= RESTART_S:
                self._running[plan.name] = self._start(plan)

    def restart(self, plan: PoolPlan) -> None:
        """Kill a pool that takes no messages; `keep_running` starts it again."""
        process = self._running.get(plan.name)
        if process is not None:
            process.kill()

    def retire(self, plan: PoolPlan) -> None:
        """End a pool for good."""
        self.plans = tuple(p for p in self.plans if p is not plan)
        for running in (self._running, self._direct):
            process = running.pop(plan.name, None)
            if process is not None:
                process.terminate()
                self._retired.append(process)

    def stand_in(self, wanted: bool) -> None:
        """Start or stop working from the database beside every pool; running tasks are finished first."""
        for plan in self.plans:
            process = self._direct.get(plan.name)
            runs = process is not None and process.poll() is None
            if wanted and not runs:
                self._direct[plan.name] = self._start(plan, direct=True)
            elif not wanted and runs and process is not None:
                process.terminate()

    def stop(self, seconds: float, idle: Callable[[], bool]) -> None:
        """Ask every pool to end; kill those that have not ended after `seconds`, or once no task is held.

        Celery takes seconds to shut down; without a task there is nothing to wait for.
        """
        for process in self._alive():
            process.terminate()
        deadline = time.monotonic() + seconds
        while self._alive() and time.monotonic() < deadline and not idle():
            time.sleep(TICK_S)
        for process in self._alive():
            process.kill()
            process.wait()
        self._running.clear()
        self._direct.clear()

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        known = [*self._running.values(), *self._direct.values(), *self._retired]
        return [process for process in known if process.poll() is None]

    def _start(self, plan: PoolPlan, *, direct: bool = False) -> subprocess.Popen[bytes]:
        environment = {**ONE_THREAD, **os.environ, WORKER_ID: self._worker_id, PARENT: str(os.getpid())}
        environment.pop(POOL_DEVICE, None)
        environment[COMPILE_DEVICES] = DEVICES.dump_json(plan.compiles_for).decode()
        if plan.device is not None:
            environment[POOL_DEVICE] = plan.device.model_dump_json()
        command = [sys.executable, "-m", self._module, "--queues", ",".join(plan.queues)]
        command += ["--concurrency", str(plan.concurrency), "--name", f"{plan.name}-{self._worker_id}"]
        command += ["--direct"] if direct else []
        # A session of its own: Ctrl-C in a terminal reaches this process only, which stops the pools in
        # order.
        return subprocess.Popen(command, env=environment, start_new_session=True)
