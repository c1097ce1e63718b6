"""`serve` and `worker`: the applications, which are not part of the wheel, found by name."""

import ipaddress
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from warpsmith import logs
from warpsmith.errors import Unavailable
from warpsmith.settings import settings


def serve(host: str | None, port: int | None, embedded: bool | None) -> None:
    """Run the API until SIGTERM or SIGINT."""
    current = settings()
    create_app = _application("api.app").create_app
    import uvicorn

    logs.configure()
    with_worker = current.embedded if embedded is None else embedded
    address, number = host or current.host, port or current.port
    mode = "embedded: SQLite and one worker of its own" if with_worker else "API only"
    typer.echo(f"warpsmith: {mode}, data in {current.data_dir.absolute()}", err=True)
    if _is_public(address):
        typer.echo("warpsmith: listening beyond loopback, and there is no authentication yet", err=True)
    uvicorn.run(create_app(current, with_worker=with_worker), host=address, port=number, log_level="warning")


def worker(queues: Sequence[str], concurrency: int) -> None:
    """Run a worker until SIGTERM or SIGINT."""
    logs.configure()
    _application("worker.main").run(tuple(queues), concurrency=concurrency)


def _application(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and exc.name.split(".")[0] == name.split(".", maxsplit=1)[0]:
            where = "a checkout of the project or its container image"
            raise Unavailable(f"this installation holds the core only; run this from {where}") from exc
        raise


def _is_public(address: str) -> bool:
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address != "localhost" and "WARPSMITH_QUIET" not in os.environ
