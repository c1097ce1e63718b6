"""The processes of a worker: one Celery pool per plan, and stand-ins while the broker is silent."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from warpsmith import applications
from warpsmith.processes.forked_process import ChildStart, ForkedProcess, ForkServer, NoServer
from warpsmith.processes.parent_death import PARENT
from worker.device.pool_environment import COMPILE_DEVICES, DEVICES, POOL_DEVICE, WORKER_ID
from worker.supervision.pool_plans import PoolPlan

TICK_S = 0.05
RESTART_S = 1.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Thread limits: a searcher's matrices are small, and concurrent pools with many threads slow each other
down."""

Process = ForkedProcess | subprocess.Popen[bytes]

log = logging.getLogger(__name__)


class PoolStarter:
    """Starts pools as forks of one process that has imported what every pool needs: a second of a core each.

    Args:
        module: its `main(arguments)` runs one pool.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._environment = {**ONE_THREAD, **os.environ}
        for name in (POOL_DEVICE, COMPILE_DEVICES, WORKER_ID):
            self._environment.pop(name, None)
        # Settings may come from a file of the working folder.
        self._server = ForkServer(self._environment, [module], str(Path.cwd()))

    def start(self, arguments: Sequence[str], own: Mapping[str, str]) -> Process:
        """A pool in a session of its own; it ends with this process.

        Ctrl-C in a terminal reaches this process only, which stops the pools in order.

        Args:
            own: environment variables of this pool, beside those of this process.
        """
        environment = {**own, PARENT: str(self._server.pid)}
        child = ChildStart(self._module, arguments, environment, str(Path.cwd()))
        try:
            with Path(os.devnull).open("rb") as nothing:
                return self._server.start(child, (nothing.fileno(), 1, 2))
        except NoServer as exc:
            log.warning("a pool starts as a program of its own: %s", exc)
            # One that is merely late would fork the pool a second time.
            self._server.close()
            return self.start_program(arguments, own)

    def start_program(self, arguments: Sequence[str], own: Mapping[str, str]) -> Process:
        """Start a pool as a program, which runs what is registered for its exit."""
        environment = {**self._environment, **own, PARENT: str(os.getpid())}
        return subprocess.Popen(
            applications.command(self._module, *arguments),
            env=applications.environment(environment),
            start_new_session=True,
        )

    def close(self) -> None:
        """End the process and the pools that it has forked."""
        self._server.close()


class Supervisor:
    """Starts the pools, restarts those that end by themselves, and stops them."""

    def __init__(self, plans: Sequence[PoolPlan], worker_id: str, starter: PoolStarter) -> None:
        self.plans = plans
        self.needs_threads = False
        """True once pools of threads have something to do."""
        self.worker_id = worker_id
        self._starter = starter
        self._running: dict[str, Process] = {}
        self._direct: dict[str, Process] = {}
        self._ended_at: dict[str, float] = {}
        self._retired: list[Process] = []

    def keep_running(self) -> None:
        """Start missing pools; one that has just ended waits a moment."""
        for plan in self.plans:
            process = self._running.get(plan.name)
            if not self._is_needed(plan) or (process is not None and process.poll() is None):
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
            if wanted and not runs and self._is_needed(plan):
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

    def _is_needed(self, plan: PoolPlan) -> bool:
        return self.needs_threads or not plan.threads

    def _alive(self) -> list[Process]:
        known = [*self._running.values(), *self._direct.values(), *self._retired]
        return [process for process in known if process.poll() is None]

    def _start(self, plan: PoolPlan, *, direct: bool = False) -> Process:
        own = {WORKER_ID: self.worker_id}
        own[COMPILE_DEVICES] = DEVICES.dump_json(plan.compiles_for).decode()
        if plan.device is not None:
            own[POOL_DEVICE] = plan.device.model_dump_json()
        arguments = ["--queues", ",".join(plan.queues), "--concurrency", str(plan.concurrency)]
        arguments += ["--name", f"{plan.name}-{self.worker_id}"]
        if plan.threads:
            arguments.append("--threads")
        if direct:
            # Traces are sent at the exit of the program.
            return self._starter.start_program([*arguments, "--direct"], own)
        return self._starter.start(arguments, own)
