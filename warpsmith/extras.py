"""The extras of the wheel: which one brings a library, and errors that name it.

A plain installation is the core and the client. Every other library is imported where it is needed, and an
error about a missing one says what to install.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from warpsmith.errors import Unavailable

if TYPE_CHECKING:
    from warpsmith.settings import Settings

_SERVICES = ("opencl", "pycuda", "serve")
_ALL = (*_SERVICES, "worker")
BRINGERS: dict[str, tuple[str, ...]] = {
    "alembic": _ALL,
    "celery": _ALL,
    "kombu": _ALL,
    "opentelemetry": _ALL,
    "optuna": _ALL,
    "sqlalchemy": _ALL,
    "structlog": _ALL,
    "fastapi": _SERVICES,
    "fastapi_offline": _SERVICES,
    "prometheus_client": _SERVICES,
    "starlette": _SERVICES,
    "uvicorn": _SERVICES,
    "psycopg": ("serve", "worker"),
    "redis": ("serve", "worker"),
    "pyopencl": ("opencl",),
    "cuda": ("cuda", "pycuda"),
    "pynvml": ("cuda", "pycuda"),
    "pycuda": ("pycuda",),
    "hip": ("hip",),
    "triton": ("triton",),
    "openai": ("models",),
    "mcp": ("mcp",),
    "opentelemetry.sdk": ("otel",),
    "opentelemetry.exporter": ("otel",),
}
"""Extras by module, the one first that most users want."""
EMBEDDED = (
    "alembic",
    "celery",
    "fastapi",
    "fastapi_offline",
    "optuna",
    "prometheus_client",
    "sqlalchemy",
    "structlog",
    "uvicorn",
)
"""Modules of the embedded mode: the service with a worker on SQLite."""


def advice(module: str) -> str | None:
    """Advice that brings a module (`install warpsmith[opencl]`); None if no extra does."""
    known = _known(module)
    if known is None:
        return None
    *others, last = (f"warpsmith[{extra}]" for extra in BRINGERS[known])
    return f"install {', '.join(others)} or {last}" if others else f"install {last}"


@contextmanager
def naming_extras() -> Iterator[None]:
    """Context in which a library that cannot be found is an error that names its extra.

    Raises:
        Unavailable: a module of an extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        known = _known(exc.name or "")
        if known is None:
            raise
        raise Unavailable(f"{known} is missing; {advice(known)}") from exc


def require(modules: Iterable[str]) -> None:
    """Check that modules can be found, without importing them.

    Raises:
        Unavailable: one cannot; the message names its extra.
    """
    for module in modules:
        if find_spec(module) is None:
            raise Unavailable(f"{module} is missing; {advice(module)}")


def require_embedded(settings: "Settings") -> None:
    """Check, without importing them, that the libraries of the embedded mode are there.

    Raises:
        Unavailable: one is missing; the message names its extra.
    """
    require((*EMBEDDED, *wanted_by(settings, models=True)))


def wanted_by(settings: "Settings", *, models: bool) -> list[str]:
    """Modules that the settings call for, beyond those of the embedded mode.

    Args:
        models: whether the process may call a model.
    """
    wanted = []
    if settings.sqlalchemy_url.startswith("postgres"):
        wanted.append("psycopg")
    if (settings.broker_url or "").startswith("redis"):
        wanted.append("redis")
    if models and settings.openai_base_url is not None:
        wanted.append("openai")
    return wanted


def _known(module: str) -> str | None:
    """The innermost package of a module that an extra is known to bring."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in BRINGERS), None)
