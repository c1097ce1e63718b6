"""Spare time of a verification: whether an energy measurement still fits in."""

import time
from dataclasses import dataclass, field


@dataclass
class SpareTime:
    """Of a verification: whether something beside the comparisons fits in.

    Args:
        seconds: that the verification may take; None: as long as it likes.
        parts: comparisons that it is made of, equally long as far as is known.
    """

    seconds: float | None
    parts: int
    _begun: float = field(default_factory=time.monotonic)
    _done: int = 0
    _extra_s: float = 0.0

    def fits(self, extra_s: float) -> bool:
        """Whether so many more seconds, at the end of a part, leave enough for the parts to come."""
        if self.seconds is None:
            return True
        taken = time.monotonic() - self._begun
        each = (taken - self._extra_s) / (self._done + 1)
        return taken + extra_s + each * (self.parts - self._done - 1) <= self.seconds

    def took(self, extra_s: float) -> None:
        """So many seconds went into something beside the comparisons."""
        self._extra_s += extra_s

    def next_part(self) -> None:
        """A part is done."""
        self._done += 1
