"""Spare time of a verification: decides whether a further measurement still fits."""

import time
from dataclasses import dataclass, field


@dataclass
class SpareTime:
    """Spare seconds of a verification, beside its comparisons.

    Args:
        seconds: time limit of the verification; None: no limit.
        parts: number of comparisons, assumed to be equally long.
    """

    seconds: float | None
    parts: int
    _begun: float = field(default_factory=time.monotonic)
    _done: int = 0
    _extra_s: float = 0.0

    def fits(self, extra_s: float) -> bool:
        """True if this number of seconds, at the end of a part, leaves enough for the remaining parts."""
        if self.seconds is None:
            return True
        taken = time.monotonic() - self._begun
        each = (taken - self._extra_s) / (self._done + 1)
        return taken + extra_s + each * (self.parts - self._done - 1) <= self.seconds

    def took(self, extra_s: float) -> None:
        """Record seconds spent on something beside the comparisons."""
        self._extra_s += extra_s

    def next_part(self) -> None:
        """Start the next part."""
        self._done += 1
