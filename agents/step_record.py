"""What a step has cost and seen, whether or not it brought an answer."""

from dataclasses import dataclass, field

from agents.model_budget import Cost
from warpsmith.tuning.tasks import StepResult


@dataclass
class Record:
    """What a step has cost and seen so far."""

    model: str = ""
    prompt: str = ""
    reply: str = ""
    notes: list[str] = field(default_factory=list)
    calls: int = 0
    cost: Cost = field(default_factory=Cost)

    def on(self, result: StepResult) -> StepResult:
        """The result with this record."""
        return result.model_copy(
            update={
                "model": self.model,
                "prompt": self.prompt,
                "reply": self.reply,
                "notes": tuple(n.replace("\0", "") for n in self.notes),
                "calls": self.calls,
                "tokens": self.cost.tokens,
                "usd": self.cost.usd,
            }
        )


class NoAnswer(Exception):
    """A provider that cannot answer; the rules do it in its place.

    Args:
        reason: for the step's record.
        record: what was spent in vain.
    """

    def __init__(self, reason: str, record: Record | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.record = record or Record()
