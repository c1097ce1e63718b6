"""Cost and observations of a step, with or without an answer."""

from dataclasses import dataclass, field

from agents.providers.model_budget import Cost
from warpsmith.tuning.tasks import StepResult


@dataclass
class Record:
    """Cost and observations of a step so far."""

    model: str = ""
    prompt: str = ""
    reply: str = ""
    notes: list[str] = field(default_factory=list)
    calls: int = 0
    cost: Cost = field(default_factory=Cost)
    cached_tokens: int = 0
    written_tokens: int = 0

    def on(self, result: StepResult) -> StepResult:
        """The result extended by this record."""
        return result.model_copy(
            update={
                "model": self.model,
                "prompt": self.prompt,
                "reply": self.reply,
                "notes": tuple(map(storable, self.notes)),
                "calls": self.calls,
                "tokens": self.cost.tokens,
                "cached_tokens": self.cached_tokens,
                "written_tokens": self.written_tokens,
                "usd": self.cost.usd,
            }
        )


def storable(text: str) -> str:
    """A text as every database takes it: without NUL, and a lone surrogate as its escape."""
    return text.replace("\0", "").encode(errors="backslashreplace").decode()


class CannotAnswer(Exception):
    """A provider cannot answer; the rules answer in its place.

    Args:
        reason: text for the step's record.
        record: cost and observations of the failed attempt.
    """

    def __init__(self, reason: str, record: Record | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.record = record or Record()
