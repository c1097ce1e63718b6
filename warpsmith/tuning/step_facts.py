"""Records of a job in the form in which agent steps get them."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.lessons.lesson import Lesson
from warpsmith.tuning.tasks import BaselineResult, ToolAnswer, ToolCall


@dataclass(frozen=True)
class AgentTurn:
    """An earlier turn of a conversation: the tools that an agent wanted used, and what they said."""

    reply: str
    """The agent's words."""
    calls: Sequence[ToolCall]
    answers: Sequence[ToolAnswer]
    """Answers of the tools, one for each call."""


@dataclass(frozen=True)
class Tried:
    """A candidate of the job, and what it gave."""

    number: int
    round: int
    template: Template
    trials: int
    best_objective: float | None
    """Its best time divided by that of the user's kernel; None: nothing was measured."""
    best: Configuration | None
    """The configuration with that time."""
    rejected: str
    """Why its template was rejected; empty if it was not."""
    idea: str = ""
    """Name of the idea that it follows; empty if its planner named none."""


@dataclass(frozen=True)
class Earlier:
    """Lesson of an earlier job about the same kernel or one like it."""

    job_id: str
    lesson: Lesson
    likeness: float
    """Share of equal code, from 0 to 1."""
    is_same_kernel: bool
    is_same_device_class: bool


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
    """Messages of the compiler."""
    turns: Sequence[AgentTurn] = ()
    """Earlier turns of the step's conversation."""
    tried: Sequence[Tried] = ()
    """Earlier candidates of the job, in order; only for steps that may use tools or name several ideas."""
    earlier: Sequence[Earlier] = ()
    """Lessons of earlier jobs, the most similar kernel first."""
