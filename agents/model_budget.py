"""What a job may still spend on models. Money is set aside before a call and settled after it."""

from dataclasses import dataclass
from typing import Protocol

MESSAGE_TOKENS = 16
"""More than any server adds to a message for its role and delimiters."""


@dataclass(frozen=True)
class Cost:
    """Tokens and their price."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    prompt: float
    reply: float

    def cost(self, prompt_tokens: int, reply_tokens: int) -> Cost:
        """What so many tokens cost."""
        usd = (prompt_tokens * self.prompt + reply_tokens * self.reply) / 1e6
        return Cost(prompt_tokens + reply_tokens, usd)


class Purse(Protocol):
    """The budget of one job."""

    booked: Cost
    """What this step has booked so far, reservations included."""

    def left(self) -> Cost:
        """What may still be spent."""
        ...

    def reserve(self, cost: Cost) -> bool:
        """Set aside; False where that is more than is left."""
        ...

    def settle(self, reserved: Cost, spent: Cost) -> None:
        """Put the true cost in place of a reservation."""
        ...


class SmallPurse:
    """A purse in memory."""

    def __init__(self, tokens: int, usd: float) -> None:
        self._limit = Cost(tokens, usd)
        self.booked = Cost()

    def left(self) -> Cost:
        """See `Purse`."""
        return self._limit - self.booked

    def reserve(self, cost: Cost) -> bool:
        """See `Purse`."""
        left = self.left()
        if cost.tokens > left.tokens or cost.usd > left.usd:
            return False
        self.booked += cost
        return True

    def settle(self, reserved: Cost, spent: Cost) -> None:
        """See `Purse`."""
        self.booked += spent - reserved


def prompt_bound(texts: list[str]) -> int:
    """No fewer tokens than these messages have: a token of a byte-level vocabulary is a byte at least."""
    return sum(len(t.encode()) + MESSAGE_TOKENS for t in texts)
