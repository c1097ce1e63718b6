"""Jobs that no worker can serve: what they say, and when they are given up. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REASON_CHARACTERS = 300
MOST_REASONS = 5


@dataclass(frozen=True)
class Unserved:
    """Nobody offers what a job needs."""

    needs: str
    """A back end, or the device class that the job was begun on, in words."""
    lacking: Mapping[str, Sequence[str]]
    """By reason, the machines that say so; empty where no worker has reported yet."""
    seconds: float
    """For so long."""
    limit_s: float
    """After so long a job that has not begun fails; 0: at once, whatever has begun, because there is one
    worker only, and it will not come to have more."""

    def words(self, begun: bool) -> str:
        """What the job says.

        Args:
            begun: see `is_over`.
        """
        if not self.lacking:
            return f"waiting for a worker with {self.needs}"
        who = [f"{', '.join(sorted(set(on)))}: {r}" if self.limit_s else r for r, on in self.lacking.items()]
        shown = "; ".join(words[:REASON_CHARACTERS] for words in who[:MOST_REASONS])
        shown += f"; and {len(who) - MOST_REASONS} more" if len(who) > MOST_REASONS else ""
        if not self.limit_s:
            return f"this machine has nothing for {self.needs}: {shown}"
        until = "" if begun else f"; the job fails when that lasts {self.limit_s / 60:g} min"
        return f"no worker has anything for {self.needs} ({shown}){until}"

    def is_over(self, begun: bool) -> bool:
        """Whether the job is given up.

        Args:
            begun: it has results, which a worker that comes back goes on from.
        """
        if not self.lacking or (begun and self.limit_s):
            return False
        return self.seconds >= self.limit_s
