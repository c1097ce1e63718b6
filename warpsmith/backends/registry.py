"""Back ends by name, imported only when they are asked for."""

from importlib import import_module
from typing import cast

from warpsmith.backends.base import BackendModule
from warpsmith.domain.device import Backend
from warpsmith.errors import Unavailable
from warpsmith.registry import Kind, named

_OWN = {
    Backend.CUDA: "warpsmith.backends.cuda.backend",
    Backend.OPENCL: "warpsmith.backends.opencl.backend",
}


def backend_module(backend: Backend) -> BackendModule:
    """The module of a back end.

    Raises:
        Unavailable: no module for it exists.
    """
    place = _OWN.get(backend) or named(Kind.BACK_END).get(backend.value)
    if place is None:
        names = [*(known.value for known in _OWN), *named(Kind.BACK_END)]
        raise Unavailable(
            f"back end {backend.value} is not supported yet; use {', '.join(names[:-1])} or {names[-1]}"
        )
    return cast(BackendModule, import_module(place))
