"""Warpsmith: a distributed tuning service for GPU kernels.

What stands in `__all__` is the Python interface. Each name is loaded when it is first used, so that
`import warpsmith` costs nothing.
"""

from typing import TYPE_CHECKING

from warpsmith.version import __version__

if TYPE_CHECKING:
    from warpsmith.domain.arguments.argument import Argument
    from warpsmith.domain.jobs.job import (
        Budget,
        Job,
        KernelReference,
        NumpyReference,
        Objective,
        Tolerance,
        Workload,
    )
    from warpsmith.domain.kernels.kernel import Kernel
    from warpsmith.domain.kernels.launch import Launch
    from warpsmith.domain.templates.space import Constraint, Parameter
    from warpsmith.errors import InvalidInput, NotFound, TimedOut, Unavailable, WarpsmithError
    from warpsmith.extensions.clients.client import AsyncClient, Client
    from warpsmith.extensions.clients.python.result import Result
    from warpsmith.extensions.clients.python.tune import tune
    from warpsmith.http_models import AgentRequest, JobStatus
    from warpsmith.job_files.jobfile import load_job

__all__ = [
    "AgentRequest",
    "Argument",
    "AsyncClient",
    "Budget",
    "Client",
    "Constraint",
    "InvalidInput",
    "Job",
    "JobStatus",
    "Kernel",
    "KernelReference",
    "Launch",
    "NotFound",
    "NumpyReference",
    "Objective",
    "Parameter",
    "Result",
    "TimedOut",
    "Tolerance",
    "Unavailable",
    "WarpsmithError",
    "Workload",
    "__version__",
    "load_job",
    "tune",
]

_PLACES = {
    "extensions.clients.client": ("AsyncClient", "Client"),
    "domain.arguments.argument": ("Argument",),
    "domain.jobs.job": (
        "Budget",
        "Job",
        "KernelReference",
        "NumpyReference",
        "Objective",
        "Tolerance",
        "Workload",
    ),
    "domain.kernels.kernel": ("Kernel",),
    "domain.kernels.launch": ("Launch",),
    "domain.templates.space": ("Constraint", "Parameter"),
    "errors": ("InvalidInput", "NotFound", "TimedOut", "Unavailable", "WarpsmithError"),
    "http_models": ("AgentRequest", "JobStatus"),
    "job_files.jobfile": ("load_job",),
    "extensions.clients.python.result": ("Result",),
    "extensions.clients.python.tune": ("tune",),
}

# A type checker takes a module with `__getattr__` to have every name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, loaded when it is first asked for."""
        for place, names in _PLACES.items():
            if name in names:
                from importlib import import_module

                value = getattr(import_module(f"{__name__}.{place}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """All names, loaded or not."""
        return sorted({*globals(), *__all__})
