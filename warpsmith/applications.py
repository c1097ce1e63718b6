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
from pathlib import Path
from typing import Any

from warpsmith.errors import Unavailable
from warpsmith.extras import naming_extras
from warpsmith.processes.quick_imports import without_collector

OWN_FILE = Path("db", "repositories", "search_histories.py")
"""A file beside which every application lies that is installed: an image has those that it needs."""
PACKED = "_apps"
"""The folder inside of this package that holds them in a wheel."""


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
    with naming_extras(), without_collector():
        return import_module(name)


def examples() -> Path:
    """The folder of the example jobs.

    Raises:
        Unavailable: this installation has none, as images have none.
    """
    found = _folder() / "examples"
    if not found.is_dir():
        raise Unavailable("this installation has no examples; install the wheel or use a checkout")
    return found


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
