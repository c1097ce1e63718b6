"""Lesson of a finished job."""

from typing import Self

from pydantic import model_validator

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template

MOST_TRIED = 6
"""Limit on the candidates of a job that are kept: those that gained most, then the newest that failed."""
MOST_BEST = 8
"""Limit on the configurations of a candidate that are kept."""


class Attempt(Frozen):
    """A candidate, and what it gave."""

    template: Template
    trials: int
    objective: float | None = None
    """Its best time divided by that of the user's kernel, as the search saw it; None: nothing was
    measured."""
    best: tuple[tuple[Configuration, float], ...] = ()
    """Its best configurations with their objectives, best first."""
    rejected: str = ""
    """Why its template was rejected; empty if it was not."""
    idea: str = ""
    """Name of the idea that it follows; empty if its planner named none."""

    @property
    def is_written(self) -> bool:
        """True if a model or a person wrote the template."""
        return any(a.rule == "written" for a in self.template.applied)


class Served(Frozen):
    """What serves a workload after the verification."""

    workload: str
    """Key of the workload."""
    attempt: int | None = None
    """Index in `Lesson.attempts`; None: the user's kernel."""
    configuration: Configuration = {}
    speedup: float = 1.0
    """Low end of the verified interval."""


class Lesson(Frozen):
    """A finished job: its kernel, what was tried and what serves its workloads."""

    job: Job
    device: DeviceInfo
    device_class: str
    speedup: float
    """Verified; 1 if nothing gained."""
    attempts: tuple[Attempt, ...]
    """Those that gained most first."""
    served: tuple[Served, ...]
    bounds: tuple[str, ...] = ()
    """What bounds the user's kernel, by workload: `bytes`, `operations` or `launch`."""

    @model_validator(mode="after")
    def _served_by_what_was_tried(self) -> Self:
        for n, served in enumerate(self.served):
            if served.attempt is not None and not 0 <= served.attempt < len(self.attempts):
                raise ValueError(f"served.{n}.attempt: there are {len(self.attempts)} attempts")
        return self
