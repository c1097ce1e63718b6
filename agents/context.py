"""Knowledge that a role gets with its question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.domain.job import Job
from warpsmith.domain.outcome import Outcome
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.tuning.tasks import BaselineResult


@dataclass(frozen=True)
class StepContext:
    """The job, and the candidate to start from with its finished trials."""

    job: Job
    parent: Template | None = None
    trials: Sequence[tuple[Configuration, Outcome]] = ()
    include_dirs: Mapping[str, Path] = field(default_factory=dict)
    baseline: BaselineResult | None = None
    """The user's kernel as measured, and its device."""
    rejected: Template | None = None
    """Template that the repairer has to mend."""
    log: str = ""
    """Compiler log of that template."""
