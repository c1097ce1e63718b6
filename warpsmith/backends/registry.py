"""Back ends by name, imported only when they are asked for."""

from importlib import import_module
from typing import cast

from warpsmith.backends.base import BackendModule
from warpsmith.domain.device import Backend
from warpsmith.errors import Unavailable


def backend_module(backend: Backend) -> BackendModule:
    """The module of a back end.

    Raises:
        Unavailable: no module for it exists.
    """
    if not (module := backend.language.module):
        raise Unavailable(f"back end {backend.value} is not supported yet; use cuda, opencl, hip or triton")
    return cast(BackendModule, import_module(module))
