"""Back ends by name, imported only when they are asked for."""

from importlib import import_module
from typing import cast

from warpsmith.backends.base import BackendModule
from warpsmith.domain.device import Backend, written_backends
from warpsmith.errors import Unavailable


def backend_module(backend: Backend) -> BackendModule:
    """The module of a back end.

    Raises:
        Unavailable: no module for it exists.
    """
    if not (module := backend.language.module):
        *names, last = (known.value for known in written_backends())
        raise Unavailable(f"back end {backend.value} compiles nothing; use {', '.join(names)} or {last}")
    return cast(BackendModule, import_module(module))
