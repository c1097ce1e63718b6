"""Starts the service as a user would, as processes of its own, and kills it as a power cut would."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from db.api_keys import KeyLimits, KeyScope
from db.engine import Database
from db.repositories.keys import KeyRepository
from db.tables import DEFAULT_TENANT
from testbed.deadlines import Deadline, stretched
from testbed.plain_http import NO_TLS
from testbed.servers import free_port

ROOT = Path(__file__).resolve().parents[1]


class Service:
    """One `warpsmith serve`, and `warpsmith worker` beside it where the mode is full.

    Args:
        data_dir: of the embedded mode; also where logs go.
        environment: `WARPSMITH_*` settings; with a database and a broker the mode is full.
    """

    def __init__(self, data_dir: Path, environment: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = dict(environment or {})
        self.full = "WARPSMITH_BROKER_URL" in self.settings
        self.processes: list[subprocess.Popen[bytes]] = []
        self.headers: dict[str, str] = {}

    def start(self) -> "Service":
        """Migrate (full mode, the first time), start every process and wait until the service is ready."""
        if self.full and not self.headers:
            self._run("warpsmith", "migrate")
            self.headers = {"Authorization": f"Bearer {self._new_key()}"}
        self.spawn("serve", "--port", str(self.port))
        if self.full:
            self.spawn("worker")
        deadline = Deadline(60)
        while not deadline.passed():
            if any(p.poll() is not None for p in self.processes):
                break
            try:
                if httpx2.get(f"{self.url}/readyz", timeout=2, verify=NO_TLS).status_code == 200:
                    return self
            except httpx2.HTTPError:
                pass
            time.sleep(0.1)
        self.kill()
        raise AssertionError(f"the service did not become ready:\n{self.logs()}")

    def kill(self) -> None:
        """SIGKILL to every process at once: no goodbye."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.processes.clear()

    def stop(self) -> None:
        """SIGTERM, as an operator would; SIGKILL for what does not end."""
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(stretched(20))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes.clear()

    def logs(self) -> str:
        """The end of every log."""
        files = sorted(self.data_dir.glob("*.log"))
        return "\n".join(f"== {f.name}\n{f.read_text(errors='replace')[-4000:]}" for f in files)

    def submit(self, job: Mapping[str, Any], key: str | None = None) -> str:
        """Post a job; its id."""
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        reply = httpx2.post(f"{self.url}/v1/jobs", json=job, headers=headers, timeout=30, verify=NO_TLS)
        assert reply.status_code == 202, reply.text
        assert reply.headers["location"].endswith(reply.json()["id"])
        return str(reply.json()["id"])

    def get(self, path: str) -> Any:
        """The JSON of a page that must exist."""
        reply = httpx2.get(f"{self.url}{path}", headers=self.headers, timeout=30, verify=NO_TLS)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def wait_for(self, path: str, until: Any, seconds: float = 60) -> Any:
        """Poll a page until `until(page)` holds."""
        deadline = Deadline(seconds)
        while not until(page := self.get(path)):
            assert not deadline.passed(), f"waited {seconds} s; last {page}\n{self.logs()}"
            time.sleep(0.2)
        return page

    def wait(self, job: str, until: Any, seconds: float = 150) -> Any:
        """Poll the status until `until(status)` holds."""
        deadline = Deadline(seconds)
        status: Any = {}
        while not deadline.passed():
            status = self.get(f"/v1/jobs/{job}")
            if until(status):
                return status
            time.sleep(0.2)
        raise AssertionError(f"waited {seconds} s; last status {status}\n{self.logs()}")

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """One more process of the service, which `kill` and `stop` end too."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        log = (self.data_dir / f"{command[0]}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "warpsmith", *command],
            cwd=ROOT,
            env=self._environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def _run(self, *module: str) -> None:
        """A command that ends by itself."""
        words = [sys.executable, "-m", *module]
        subprocess.run(words, cwd=ROOT, env=self._environment(), check=True, capture_output=True)

    def _new_key(self) -> str:
        """What opens everything of the tenant `default`; from this process, which need not start."""
        database = Database(self.settings["WARPSMITH_DATABASE_URL"])
        try:
            with database.write() as session:
                return KeyRepository(session).create("e2e", DEFAULT_TENANT, tuple(KeyScope), KeyLimits())[1]
        finally:
            database.dispose()

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        # In a container the tests are root.
        own = {"WARPSMITH_DATA_DIR": str(self.data_dir), "WARPSMITH_ALLOW_ROOT": "true"}
        return kept | own | self.settings


def ended(status: Any) -> bool:
    """The job has reached a terminal state."""
    return status["state"] in ("done", "failed", "cancelled")


def trials_of(service: Service, job: str) -> list[dict[str, Any]]:
    """All trials, page by page."""
    items: list[dict[str, Any]] = []
    page = service.get(f"/v1/jobs/{job}/trials")
    while True:
        items += page["items"]
        if page["next"] is None:
            return items
        page = service.get(f"/v1/jobs/{job}/trials?after={page['next']}")


def finished(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Finished trials by candidate and configuration; each may finish once only."""
    done = [t for t in trials if t["state"] == "finished"]
    by_key = {f"{t['candidate']} {sorted(t['configuration'].items())}": t["outcome"] for t in done}
    assert len(by_key) == len(done), "a configuration was run twice"
    return by_key
