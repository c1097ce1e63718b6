"""`warpsmith serve` and `warpsmith keys`, as processes: who may listen where, and with which keys."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from testbed.deadlines import Deadline, stretched
from testbed.plain_http import NO_TLS
from testbed.servers import free_port
from warpsmith.cli import main
from warpsmith.settings import settings

ROOT = Path(__file__).resolve().parents[2]
KEY = re.compile(r"ws_[0-9a-z]{12}_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Machine:
    """Runs commands with a data folder of its own."""

    settings: Mapping[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "warpsmith", *command]
        return subprocess.run(
            words,
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=stretched(60),
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        return kept | dict(self.settings)

    @contextmanager
    def serving(self, host: str) -> Iterator[str]:
        """A running API; its address as this machine reaches it."""
        port = free_port()
        words = [sys.executable, "-m", "warpsmith", "serve", "--no-embedded", "--host", host]
        process = subprocess.Popen([*words, "--port", str(port)], cwd=ROOT, env=self.environment)
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = Deadline(30)
            while True:
                try:
                    assert httpx2.get(f"{url}/healthz", verify=NO_TLS).status_code == 200
                    break
                except httpx2.HTTPError:
                    assert process.poll() is None and not deadline.passed()
                    time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(stretched(20))


@pytest.fixture
def embedded(tmp_path: Path) -> Machine:
    return Machine({"WARPSMITH_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def full(tmp_path: Path, migrated_sqlite: str) -> Machine:
    """A database of its own, migrated; no worker, no broker that answers."""
    return Machine(
        {
            "WARPSMITH_DATA_DIR": str(tmp_path / "data"),
            "WARPSMITH_DATABASE_URL": migrated_sqlite,
            "WARPSMITH_BROKER_URL": f"redis://127.0.0.1:{free_port()}/0",
        }
    )


@pytest.mark.parametrize("mode", ["embedded", "full"])
def test_beyond_loopback_nothing_listens_without_a_key(mode: str, request: pytest.FixtureRequest) -> None:
    machine: Machine = request.getfixturevalue(mode)
    ran = machine.run("serve", "--no-embedded", "--host", "0.0.0.0", "--port", str(free_port()))
    assert ran.returncode == 3
    assert "refusing to listen on 0.0.0.0 while there is no API key" in ran.stderr
    assert "warpsmith keys create" in ran.stderr


def test_the_life_of_a_key(embedded: Machine) -> None:
    made = embedded.run("keys", "create", "ci", "--days", "30", "--limit", "open_jobs=5")
    key = made.stdout.strip()
    assert made.returncode == 0 and KEY.fullmatch(key), made.stderr
    assert "only time that the key is shown" in made.stderr
    key_id = key.split("_")[1]
    (line,) = embedded.run("keys", "list").stdout.splitlines()
    assert line.startswith(f"{key_id}  active  default  submit,read  ci  since ")
    assert line.endswith("  open_jobs=5") and key not in line
    with embedded.serving("0.0.0.0") as url:
        assert httpx2.get(f"{url}/v1/jobs", verify=NO_TLS).status_code == 401
        user = Machine({**embedded.settings, "WARPSMITH_API_KEY": key})
        jobs = user.run("jobs", "--state", "done", "--url", url, "--json")
        assert jobs.returncode == 0 and '"items": []' in jobs.stdout, jobs.stderr
        stranger = embedded.run("jobs", "--url", url)
        assert stranger.returncode == 2
        assert "API key: send an API key" in stranger.stderr
        rotated = embedded.run("keys", "rotate", key_id).stdout.strip()
        assert KEY.fullmatch(rotated) and rotated != key
        assert embedded.run("keys", "revoke", rotated.split("_")[1]).stdout.strip().endswith("is ended")
    states = [line.split()[1] for line in embedded.run("keys", "list").stdout.splitlines()]
    assert states == ["ended", "ended"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "x", "--scopes", "root"], "'root' is none of submit, read, agents, admin"),
        (["create", "x", "--scopes", ","], "name at least one"),
        (["create", "x", "--tenant", "Big Corp"], "lower-case"),
        (["create", "x", "--limit", "open_jobs=many"], "--limit open_jobs"),
        (["create", "x", "--limit", "jobs=3"], "--limit jobs"),
        (["create", ""], "1 to 120 printable"),
        (["revoke", "nothing"], "no key nothing"),
    ],
)
def test_what_is_no_key_is_refused(
    embedded: Machine,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in embedded.settings.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    try:
        with pytest.raises(SystemExit) as caught:
            main(["keys", *arguments])
    finally:
        settings.cache_clear()
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert words in said.err


def test_on_loopback_the_embedded_mode_is_open_and_says_so(embedded: Machine) -> None:
    port = str(free_port())
    words = [sys.executable, "-m", "warpsmith", "serve", "--no-embedded", "--port", port]
    process = subprocess.Popen(words, cwd=ROOT, env=embedded.environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline() + process.stderr.readline()
        assert "listens on loopback" in said and "without an API key" in said
    finally:
        process.terminate()
        process.communicate(timeout=stretched(20))


def test_the_full_mode_wants_keys_on_loopback_too(full: Machine) -> None:
    with full.serving("127.0.0.1") as url:
        assert httpx2.get(f"{url}/v1/jobs", verify=NO_TLS).status_code == 401
        key = full.run("keys", "create", "me").stdout.strip()
        header = {"Authorization": f"Bearer {key}"}
        assert httpx2.get(f"{url}/v1/jobs", headers=header, verify=NO_TLS).status_code == 200
        assert httpx2.get(f"{url}/metrics", headers=header, verify=NO_TLS).status_code == 403
