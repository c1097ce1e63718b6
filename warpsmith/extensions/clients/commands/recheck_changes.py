"""An old result checked again: the job that measures its winners, and what has changed since. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from warpsmith.domain.jobs.job import AgentPolicy, Job
from warpsmith.domain.templates.outcome import Comparison
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult

LABEL = "rechecks"
"""Label with the id of the job that is checked again."""
MORE_TRIALS = 2
"""Trials besides those of the winners: the template's defaults, and one in place of a failed one."""
LEAST_S = 60.0


@dataclass(frozen=True)
class WinnerChange:
    """Comparison of a workload in the earlier result and in the new one."""

    workload: str
    then: Comparison
    now: Comparison | None
    """Comparison of the new result; None: no trial promised a gain, so nothing was compared."""
    serves: bool
    """True if a tuned configuration serves the workload now as well."""
    was_tried: bool
    """True if the winner of then was run."""

    @property
    def words(self) -> str:
        """The change of the workload, in a sentence."""
        then = f"{self.workload}: {self.then.speedup.estimate:.2f}x then"
        if not self.serves and not self.was_tried:
            return f"{then}, not checked: the service began with another template, or remembers nothing"
        if self.now is None or not self.serves:
            return f"{then}, no gain now: keep your own kernel"
        now, before = self.now.speedup, self.then.speedup
        said = f"{then}, {now.estimate:.2f}x [{now.low:.2f}, {now.high:.2f}] now"
        if now.low <= before.high and before.low <= now.high:
            said += ": as before"
        else:
            said += ": more than before" if now.low > before.high else ": less than before"
        same = self.now.configuration_key == self.then.configuration_key
        return said if same else f"{said}, by another configuration"


def recheck_job(old: JobResult) -> Job:
    """A job that measures the winners of a result again, as the service remembers them.

    Raises:
        InvalidInput: no workload of the result has a winner.
    """
    winners = {c.configuration_key for c in published(old)}
    if not winners:
        raise InvalidInput("job", f"{old.id} has no winner to check: your own kernel serves every workload")
    budget = old.job.budget.model_copy(
        update={
            "rounds": 1,
            "trials": len(winners) + MORE_TRIALS,
            "seconds": max(LEAST_S, old.job.budget.seconds),
        }
    )
    return old.job.model_copy(
        update={
            "budget": budget,
            "agents": AgentPolicy(provider="rules"),
            "labels": old.job.labels | {LABEL: old.id},
        }
    )


def changes(old: JobResult, new: JobResult, tried: Collection[Configuration]) -> tuple[WinnerChange, ...]:
    """Changes of the workloads that had a winner.

    Args:
        tried: configurations that the new job ran.
    """
    compared = {c.workload: c for c in new.comparisons}
    winners = {entry.workload: entry.configuration for entry in old.dispatch}
    served = {entry.workload for entry in new.dispatch if entry.configuration is not None}
    return tuple(
        WinnerChange(
            c.workload, c, compared.get(c.workload), c.workload in served, winners[c.workload] in tried
        )
        for c in published(old)
    )


def environment_lines(old: JobResult, new: JobResult) -> Iterator[str]:
    """Lines on device, driver and version of both results, with an arrow where they differ."""
    for name, then, now in (
        ("device", old.device, new.device),
        ("driver", old.driver, new.driver),
        ("warpsmith", old.warpsmith_version, new.warpsmith_version),
    ):
        yield f"{name}: {then}" + ("" if now == then else f" → {now}")


def published(result: JobResult) -> list[Comparison]:
    """Comparisons of the workloads that a tuned configuration serves."""
    served = {entry.workload for entry in result.dispatch if entry.configuration is not None}
    return [c for c in result.comparisons if c.workload in served]
