"""Which defences are on. All are, always: only tests and the mutation test of the defences switch one off."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defences:
    """One switch for each defence. No job, setting or request reaches it."""

    poison: bool = True
    """Outputs hold random bytes before a checked launch."""
    guards: bool = True
    """Zones around every buffer must keep their random contents."""
    read_only: bool = True
    """Read-only inputs must keep theirs."""
    whole: bool = True
    """First-time candidates and winners are compared in every element, not by sample."""
    globals: bool = True
    """Device variables that launches could use to remember anything."""
    timed_launches: bool = True
    """Outputs of a random timed launch are compared."""
    redrawn_values: bool = True
    """That launch, at random, gets inputs that no launch before it had."""
    outputs_apart: bool = True
    """No timed launch finds the answer to its own inputs in its output."""
    families: bool = True
    """Other inputs than the job's own draw: zeros, spikes, scaled, sparse, sorted, repeated."""
    neighbours: bool = True
    """Other shapes than the listed workloads, where the user's kernel is right."""
    determinism: bool = True
    """A second launch over a partly spoiled result of the first must give the same again."""
    error_budget: bool = True
    """No more error than twice the user's kernel has."""
    task_gate: bool = True
    """A job that trivial answers would pass is refused."""
    floor: bool = True
    """No time below what the device's memory and launches allow."""
    sanitizers: bool = True
    """Winners run once under the platform's tools for memory errors, races and barriers."""
