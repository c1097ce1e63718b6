"""What the records of a job say to an agent step."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.domain.job import Job
from warpsmith.domain.outcome import Outcome
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.tuning.tasks import BaselineResult


@dataclass(frozen=True)
class StepFacts:
    """The job, and the candidate to start from with its finished trials."""

    job: Job
    parent: Template | None = None
    """The candidate's template; None: the user's kernel."""
    trials: Sequence[tuple[Configuration, Outcome]] = ()
    """Finished trials of the parent."""
    baseline: BaselineResult | None = None
    """The user's kernel as measured, and its device."""
    rejected: Template | None = None
    """The template that the repairer is to mend."""
    log: str = ""
    """What the compiler said about it."""
