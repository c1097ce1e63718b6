"""Faults at random: what is killed, flushed and restarted, and how long it takes until work goes on."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from benchmarks.service.fleet import Fleet, Program
from db.tables import TaskRow, WorkerRow
from warpsmith.domain.state import TaskState

WATCH_S = 0.2


@dataclass
class Watched:
    """A task whose worker was killed."""

    task: str
    token: str
    killed_at: float


@dataclass
class Chaos:
    """One fault after another in a thread of its own.

    Args:
        every_s: mean time between faults.
    """

    fleet: Fleet
    seed: int
    every_s: float
    faults: Counter[str] = field(default_factory=Counter)
    recoveries_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stop = threading.Event()
        self._watched: list[Watched] = []
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._guarded, args=(body,), daemon=True)
            for body in (self._disturb, self._watch)
        ]
        self.actions: list[tuple[int, Callable[[], None]]] = [
            (6, self.kill_worker),
            (4, self.kill_pool_process),
            (2, self.kill_api),
            (2, self.flush_redis),
            (2, self.kill_redis),
            (1, self.restart_postgres),
            (1, self.crash_postgres),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """No more faults; everything that was killed has been started again."""
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def kill_worker(self) -> None:
        """SIGKILL to a worker's main process, one that holds a task where there is one."""
        order = self._random.sample(self.fleet.workers, len(self.fleet.workers))
        held_by = {p.name: self._held_by(p) for p in order if p.pid}
        program = next((p for p in order if held_by.get(p.name)), order[0])
        held = held_by.get(program.name, [])
        program.kill()
        killed_at = time.monotonic()
        with self._lock:
            self._watched += [Watched(task, token, killed_at) for task, token in held]
        self._stop.wait(self._random.uniform(0.2, 3))
        program.start()

    def kill_pool_process(self) -> None:
        """SIGKILL to a process of a pool."""
        program = self._random.choice(self.fleet.workers)
        found = descendants(program.pid) if program.pid else []
        if found:
            with suppress(ProcessLookupError):
                os.kill(self._random.choice(found), signal.SIGKILL)

    def kill_api(self) -> None:
        """SIGKILL to the API, and with it to a relay."""
        self.fleet.api.kill()
        self._stop.wait(self._random.uniform(0, 1))
        self.fleet.api.start()

    def flush_redis(self) -> None:
        """All messages are gone."""
        client = redis.Redis.from_url(self.fleet.redis.url)
        try:
            client.flushall()
        finally:
            client.close()

    def kill_redis(self) -> None:
        """SIGKILL to Redis; it comes back empty."""
        self.fleet.redis.kill()
        self._stop.wait(self._random.uniform(0.5, 8))
        self.fleet.redis.start()

    def restart_postgres(self) -> None:
        """A restart in order: connections are closed, transactions rolled back."""
        self.fleet.postgres.stop()
        self._stop.wait(self._random.uniform(0, 3))
        self.fleet.postgres.start()

    def crash_postgres(self) -> None:
        """All processes of Postgres end at once; it recovers from its log."""
        self.fleet.postgres.stop(signal.SIGQUIT)
        self._stop.wait(self._random.uniform(0, 1))
        self.fleet.postgres.start()

    def _disturb(self) -> None:
        weights = [weight for weight, _ in self.actions]
        while not self._stop.wait(self._random.expovariate(1 / self.every_s)):
            (action,) = self._random.choices([a for _, a in self.actions], weights)
            action()
            self.faults[action.__name__] += 1

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_S) or self._watched:
            with self._lock:
                waiting = list(self._watched)
            if not waiting:
                continue
            try:
                with self.fleet.database.read() as session:
                    query = select(TaskRow.id, TaskRow.state, TaskRow.lease_token)
                    rows = session.execute(query.where(TaskRow.id.in_([w.task for w in waiting]))).all()
            except DBAPIError:
                continue
            now = time.monotonic()
            again = {
                r.id for r in rows if r.state is not TaskState.QUEUED and r.state is not TaskState.RUNNING
            }
            running = {r.id: r.lease_token for r in rows if r.state is TaskState.RUNNING}
            over = [w for w in waiting if w.task in again or running.get(w.task, w.token) != w.token]
            if self._stop.is_set() and now - max(w.killed_at for w in waiting) > 60:
                over = waiting
            with self._lock:
                self.recoveries_s += [now - w.killed_at for w in over]
                self._watched = [w for w in self._watched if w not in over]

    def _guarded(self, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as exc:  # noqa: BLE001  a bench that breaks must say so
            self.errors.append(f"{type(exc).__name__}: {exc}")

    def _held_by(self, program: Program) -> list[tuple[str, str]]:
        try:
            with self.fleet.database.read() as session:
                query = (
                    select(TaskRow.id, TaskRow.lease_token)
                    .join(WorkerRow, WorkerRow.id == TaskRow.worker)
                    .where(WorkerRow.pid == program.pid, TaskRow.state == TaskState.RUNNING)
                )
                return [(task, token) for task, token in session.execute(query) if token is not None]
        except DBAPIError:
            return []


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found
