"""Jobs that no worker can serve: their detail, and when they are given up. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REASON_CHARACTERS = 300
MOST_REASONS = 5


@dataclass(frozen=True)
class Unserved:
    """A job's need that no worker serves."""

    needs: str
    """The back end, or the device class on which the job was begun, in words."""
    lacking: Mapping[str, Sequence[str]]
    """Machines by the reason that they report; empty if no worker that stays has reported yet."""
    seconds: float
    """Seconds for which no worker has served it."""
    limit_s: float
    """Seconds after which a job that has not begun fails. 0: at once, even if it has begun, because the only
    worker will not gain capabilities."""

    def words(self, begun: bool) -> str:
        """Detail of the job.

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
        """True if the job is given up.

        Args:
            begun: the job has results, from which a returning worker continues.
        """
        if not self.lacking or (begun and self.limit_s):
            return False
        return self.seconds >= self.limit_s
