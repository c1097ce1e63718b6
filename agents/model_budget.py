"""Budget of a job for models. Cost is reserved before a call and settled after it."""

from dataclasses import dataclass
from typing import Protocol

MESSAGE_TOKENS = 16
"""Upper bound on the tokens that a server adds to a message for its role and delimiters."""


@dataclass(frozen=True)
class Cost:
    """Tokens, and their price in USD."""

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
        """Cost of this number of tokens."""
        usd = (prompt_tokens * self.prompt + reply_tokens * self.reply) / 1e6
        return Cost(prompt_tokens + reply_tokens, usd)


class Purse(Protocol):
    """The budget of one job."""

    booked: Cost
    """Cost that this step has booked so far, reservations included."""

    def left(self) -> Cost:
        """Budget that is left."""
        ...

    def reserve(self, cost: Cost) -> bool:
        """Reserve an amount; False if it exceeds the budget left."""
        ...

    def settle(self, reserved: Cost, spent: Cost) -> None:
        """Replace a reservation by the true cost."""
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
    """Upper bound on the tokens of these messages: a token of a byte-level vocabulary is at least one
    byte."""
    return sum(len(t.encode()) + MESSAGE_TOKENS for t in texts)
