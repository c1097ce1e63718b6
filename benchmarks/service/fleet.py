"""A service on the replay back end as processes of its own: API, workers, Postgres, Redis."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from db import migrate
from db.api_keys import KeyLimits, KeyScope
from db.engine import Database
from db.repositories.keys import KeyRepository
from testbed.plain_http import NO_TLS
from testbed.postgres_process import PostgresProcess
from testbed.servers import RedisProcess, free_port

ROOT = Path(__file__).resolve().parents[2]
READY_S = 120.0


@dataclass
class Program:
    """One process that can be killed and started again."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it in a session of its own."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of the running process; 0 where there is none."""
        return self.process.pid if self.process is not None and self.process.poll() is None else 0

    def kill(self) -> None:
        """SIGKILL; what it started has to notice."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """SIGTERM, then SIGKILL."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
            try:
                self.process.wait(25)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


@dataclass
class Fleet:
    """Everything that a bench starts, and stops.

    Args:
        folder: logs and data.
        recordings: folder of recorded timings.
        devices: workers that serve the device.
        light: workers that serve decisions and agents.
        trial_s: time of a trial.
    """

    folder: Path
    recordings: Path
    postgres: PostgresProcess
    redis: RedisProcess
    devices: int
    light: int = 1
    trial_s: float = 0.1
    settings: Mapping[str, str] = field(default_factory=dict)
    api: Program = field(init=False)
    workers: list[Program] = field(init=False)
    url: str = field(init=False)
    database: Database = field(init=False)
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        environment = {
            **kept,
            "WARPSMITH_DATA_DIR": str(self.folder),
            "WARPSMITH_DATABASE_URL": self.postgres.url,
            "WARPSMITH_BROKER_URL": self.redis.url,
            "WARPSMITH_REPLAY_DIR": str(self.recordings),
            "WARPSMITH_REPLAY_TRIAL_S": str(self.trial_s),
            # Every job is to do all of its work.
            "WARPSMITH_REUSE_TRIALS_S": "0",
            "WARPSMITH_REMEMBERS": "false",
            "WARPSMITH_ALLOW_ROOT": "true",
            **self.settings,
        }
        serve = [sys.executable, "-m", "warpsmith", "serve", "--no-embedded", "--port", str(port)]
        self.api = Program("api", serve, environment, self.folder / "api.log")
        self.workers = []
        for kind, count, queues in (("light", self.light, "control,agents"), ("device", self.devices, "gpu")):
            for index in range(count):
                command = [sys.executable, "-m", "warpsmith", "worker", "--queues", queues]
                log = self.folder / f"{kind}{index}.log"
                self.workers.append(Program(f"{kind}{index}", command, environment, log))

    def __enter__(self) -> "Fleet":
        migrate.upgrade(self.postgres.url)
        self.database = Database(self.postgres.url)
        limits = KeyLimits(requests_per_s=1e6, submits_per_minute=10**6, open_jobs=10**6)
        with self.database.write() as session:
            key = KeyRepository(session).create("bench", "bench", tuple(KeyScope), limits)[1]
        self.headers = {"Authorization": f"Bearer {key}"}
        self.api.start()
        for worker in self.workers:
            worker.start()
        try:
            self._wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for program in [*self.workers, self.api]:
            if program.process is not None and program.process.poll() is None:
                program.process.send_signal(signal.SIGTERM)
        for program in [*self.workers, self.api]:
            program.stop()
        self.database.dispose()

    def submit(self, job: Mapping[str, Any], key: str, patience_s: float = 120.0) -> str:
        """Post a job until it is accepted, as a client with an idempotency key would."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                headers = self.headers | {"Idempotency-Key": key}
                reply = httpx2.post(
                    f"{self.url}/v1/jobs", json=dict(job), headers=headers, timeout=15, verify=NO_TLS
                )
                if reply.status_code == 202:
                    return str(reply.json()["id"])
                if reply.status_code < 500:
                    raise RuntimeError(f"refused: {reply.status_code} {reply.text}")
            except httpx2.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError("the API took no job")
            time.sleep(0.2)

    def get(self, path: str, timeout_s: float = 30.0) -> httpx2.Response:
        """Ask the API."""
        return httpx2.get(f"{self.url}{path}", headers=self.headers, timeout=timeout_s, verify=NO_TLS)

    def cancel(self, job: str) -> None:
        """End a job."""
        httpx2.post(
            f"{self.url}/v1/jobs/{job}/cancel", headers=self.headers, timeout=30, verify=NO_TLS
        ).raise_for_status()

    def logs(self, characters: int = 3000) -> str:
        """The end of every log."""
        parts = [
            f"== {p.name}\n{p.read_text(errors='replace')[-characters:]}"
            for p in sorted(self.folder.glob("*.log"))
        ]
        return "\n".join(parts)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        wanted = len(self.workers)
        while time.monotonic() < deadline:
            try:
                if len(self.get("/v1/workers", timeout_s=5).json()["items"]) >= wanted:
                    return
            except (httpx2.HTTPError, ValueError, KeyError):
                pass
            time.sleep(0.2)
        raise TimeoutError(f"the fleet did not come up\n{self.logs()}")
