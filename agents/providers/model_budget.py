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
    cached: float
    """Price of a prompt that the server had kept."""
    written: float
    """Price of a prompt that the server keeps from now on."""

    def cost(self, prompt_tokens: int, reply_tokens: int, cached: int = 0, written: int = 0) -> Cost:
        """Cost of this number of tokens.

        Args:
            cached: those of the prompt that the server had kept.
            written: those that it keeps from now on.
        """
        plain = max(0, prompt_tokens - cached - written)
        usd = plain * self.prompt + cached * self.cached + written * self.written
        return Cost(prompt_tokens + reply_tokens, (usd + reply_tokens * self.reply) / 1e6)

    def most(self, prompt_tokens: int, reply_tokens: int) -> Cost:
        """Cost at the dearest rate of the prompt, which a reservation has to cover."""
        usd = prompt_tokens * max(self.prompt, self.cached, self.written) + reply_tokens * self.reply
        return Cost(prompt_tokens + reply_tokens, usd / 1e6)


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
