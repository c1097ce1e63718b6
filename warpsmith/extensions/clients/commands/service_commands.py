"""`serve`, `worker` and the client. The applications are loaded by name: the core does not depend on them."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from warpsmith import applications, extras
from warpsmith.cli.output import echo
from warpsmith.errors import ServiceUnreachable, Unavailable
from warpsmith.extensions.clients.client import AsyncClient, Client
from warpsmith.processes import parent_death
from warpsmith.processes.root_user import refuse_root
from warpsmith.settings import settings
from warpsmith.system.loopback import is_loopback
from warpsmith.system.temporary_folder import temporary_folder

DEFAULT_PORT = 8765


@temporary_folder()
def serve(host: str | None, port: int | None, embedded: bool | None) -> None:
    """Run the API until SIGTERM or SIGINT, or until the process ends that started it for its own use.

    Raises:
        Unavailable: it would listen beyond loopback although no API key exists, or with a worker that is
            root.
        StorageUnusable: the embedded mode's data folder or database cannot be used.
    """
    parent_death.end_with_parent(signal.SIGTERM)
    current = settings()
    with_worker = current.embedded if embedded is None else embedded
    extras.require(extras.wanted_by(current, models=with_worker))
    create_app = applications.load("api.app").create_app
    # A client has not their libraries.
    from warpsmith import logs
    from warpsmith.system import tracing

    logs.configure()
    tracing.configure("warpsmith-api")
    if current.embedded:
        applications.load("db.migrate").prepare(current)
    address, number = host or current.host, port or current.port
    mode = "embedded: SQLite and one worker of its own" if with_worker else "API only"
    where = f", data in {current.data_dir.absolute()}" if current.embedded else ""
    echo(f"warpsmith: {mode}{where}", err=True)
    open_access = current.embedded and is_loopback(address)
    if open_access:
        words = "it listens on loopback, so every user of this machine may use it, without an API key"
        echo(f"warpsmith: {words}", err=True)
    else:
        _look_for_keys(address)
    if with_worker and not is_loopback(address):
        refuse_root(current.allow_root)
    app = create_app(current, with_worker=with_worker, open_access=open_access)
    applications.load("api.connections").serve(app, address, number)


def _look_for_keys(address: str) -> None:
    how = "make one with `warpsmith keys create NAME`"
    found = applications.load("db.admin.key_admin").any_active()
    if found is None:
        echo("warpsmith: the database does not answer yet; every request needs an API key", err=True)
    elif not found and is_loopback(address):
        echo(f"warpsmith: every request needs an API key, and there is none; {how}", err=True)
    elif not found:
        raise Unavailable(f"refusing to listen on {address} while there is no API key; {how}")


def worker(queues: Sequence[str], concurrency: int) -> None:
    """Run a worker until SIGTERM or SIGINT."""
    extras.require(extras.wanted_by(settings(), models=not queues or "agents" in queues))
    run = applications.load("worker.main").run
    from warpsmith import logs

    logs.configure()
    run(tuple(queues), concurrency=concurrency)


def agent_tools(url: str) -> None:
    """Serve the tools of agents over stdin and stdout, until stdin ends."""
    with extras.naming_extras():
        from warpsmith.extensions.clients.mcp.server import make_server
    key = settings().api_key_text
    make_server(lambda _: AsyncClient(url, key)).run("stdio")


@contextmanager
def connect(url: str) -> Iterator[Client]:
    """Context with a client that sends the key of `WARPSMITH_API_KEY`.

    Raises:
        Unavailable: nothing answers; for an address of this machine it says how to start a service.
    """
    with Client(url, settings().api_key_text) as client:
        try:
            yield client
        except ServiceUnreachable as exc:
            address = urlsplit(url)
            if not is_loopback(address.hostname or ""):
                raise
            port = "" if address.port in (None, DEFAULT_PORT) else f" --port {address.port}"
            raise Unavailable(f"{exc}; start a service with: warpsmith serve{port}") from exc
