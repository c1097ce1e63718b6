"""Knowledge that a role gets with its question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.tuning.step_facts import StepFacts


@dataclass(frozen=True)
class StepContext(StepFacts):
    """The facts of a step, and the headers that it may include."""

    include_dirs: Mapping[str, Path] = field(default_factory=dict)
    """Permitted include folders by name."""

    @classmethod
    def of(cls, facts: StepFacts, include_dirs: Mapping[str, Path]) -> "StepContext":
        """The context of a step whose facts were read from records."""
        return cls(**vars(facts), include_dirs=include_dirs)
