"""Switches of the defences. All are always on; only tests and the mutation test switch one off."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defences:
    """Switches of the defences. No job, setting or request can change them."""

    poison: bool = True
    """Outputs hold random bytes before a checked launch."""
    guards: bool = True
    """Zones around every buffer must keep their random contents."""
    read_only: bool = True
    """Read-only inputs must keep their contents."""
    whole: bool = True
    """First-time candidates and winners are compared in every element, not by sample."""
    globals: bool = True
    """Device variables that launches could use to remember earlier launches are refused."""
    telling: bool = True
    """Sources that depend on where, when or as what they are compiled are refused on CPUs."""
    timed_launches: bool = True
    """Outputs of a random timed launch are compared."""
    unspoiled: bool = True
    """The checked timed launch finds, at random, what any other launch finds in its output."""
    redrawn_values: bool = True
    """The checked timed launch gets, at random, inputs that no earlier launch had."""
    outputs_apart: bool = True
    """No timed launch finds the result for its own inputs in its output."""
    families: bool = True
    """Inputs other than the job's own draw are checked: zeros, spikes, scaled, sparse, sorted, repeated."""
    neighbours: bool = True
    """Shapes other than the listed workloads are checked, if the user's kernel is right on them."""
    worlds: bool = True
    """Small edge cases are checked: values, relations, scalars and shapes by lot."""
    between: bool = True
    """Winners are checked at random shapes between the workloads, which a dispatch table would serve."""
    determinism: bool = True
    """A second launch over a partly overwritten result must give the same result again."""
    error_budget: bool = True
    """The error may be at most about twice that of the user's kernel."""
    task_gate: bool = True
    """A job that trivial answers would pass is refused."""
    fresh_inputs: bool = True
    """A gain must be there on inputs that no launch had before."""
    own_clock: bool = True
    """A gain must be there on the worker's own clock."""
    floor: bool = True
    """Times below the floor of the device's memory and launches are refused."""
    sanitizers: bool = True
    """Winners run under the platform's tools for memory errors, races and barriers, and other schedules."""
