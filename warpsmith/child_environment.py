"""Start of a child: its environment, and the modules that its fork server has imported.

Only the locations of drivers and toolkits are inherited.
"""

import os

from warpsmith.domain.device import Backend
from warpsmith.domain.language import languages

_CHILDREN = tuple(f"warpsmith.sandbox.children.{name}_child" for name in ("compile", "device", "reference"))


def preloads(backend: Backend | None) -> tuple[str, ...]:
    """Modules for the fork server of a child of that back end (None: of one that computes on the CPU only).

    Importing them starts no driver: a driver does not survive a fork.
    """
    return _CHILDREN if backend is None else (*_CHILDREN, *backend.language.bindings)


def child_environment(backend: Backend | None) -> dict[str, str]:
    """Environment variables for a child of that back end (None: a child that computes on the CPU only)."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    asked = languages().values() if backend is None else (backend.language,)
    names = [name for language in asked for name in language.environment_names]
    for language in asked:
        environment |= language.environment
    # A fork has one thread: no library may have started others before it.
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    if backend is None:
        environment |= {"OMP_NUM_THREADS": "1"}
    return environment | {name: os.environ[name] for name in names if name in os.environ}
