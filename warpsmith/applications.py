"""The applications `api`, `worker`, `agents` and `db`: where they are, and how processes of them start.

In a checkout and in an image they lie beside this package, in a wheel inside it, so that an environment
gets no top-level names such as `api`. Whoever starts them puts their folder first on the path: the user's own
folder may hold packages of the same names.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.errors import Unavailable
from warpsmith.quick_imports import without_collector

OWN_FILE = Path("db", "repositories", "search_histories.py")
"""A file beside which every application lies that is installed: an image has those that it needs."""
PACKED = "_apps"
"""The folder inside of this package that holds them in a wheel."""
SERVICE_MODULES = frozenset({"alembic", "celery", "fastapi", "optuna", "sqlalchemy", "uvicorn"})
"""Top-level modules of the extra `service`."""


def load(name: str) -> Any:
    """A module of the applications.

    Raises:
        Unavailable: they are not installed, or a library that they need is not.
    """
    path = str(_folder())
    if sys.path[:1] != [path]:
        sys.path.insert(0, path)
    if name in sys.modules:
        return sys.modules[name]
    try:
        with without_collector():
            return import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and exc.name.split(".")[0] in SERVICE_MODULES:
            raise _missing(exc.name) from exc
        raise


def require_service() -> None:
    """Look, without importing them, whether the libraries of the extra `service` are there.

    Raises:
        Unavailable: one is missing.
    """
    for name in sorted(SERVICE_MODULES):
        if find_spec(name) is None:
            raise _missing(name)


def _missing(name: str) -> Unavailable:
    words = f"{name} is missing; install warpsmith[opencl], warpsmith[cuda] or warpsmith[service]"
    return Unavailable(words)


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of the applications, or of this package, in a process of its own.

    The current folder is not on its path; see `environment`.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base`, with the folder of the applications first in `PYTHONPATH`.

    Raises:
        Unavailable: they are not installed.
    """
    others = base.get("PYTHONPATH")
    path = str(_folder())
    return {**base, "PYTHONPATH": f"{path}{os.pathsep}{others}" if others else path}


@cache
def _folder() -> Path:
    package = Path(__file__).resolve().parent
    for folder in (package / PACKED, package.parent):
        if (folder / OWN_FILE).is_file():
            return folder
    raise Unavailable(
        "this installation has no applications; install the wheel or use a checkout of the project"
    )
