"""Traits of a result that a format of exports cannot hold, and the refusal that names them."""

from collections.abc import Mapping

from warpsmith.errors import InvalidInput
from warpsmith.report.shape_lookup import Lookup, launches_of


def has_scratch(lookup: Lookup) -> bool:
    """True if a tuned kernel needs scratch memory, or a second launch that would read it."""
    return any(s.entry.scratch_arguments or s.entry.launches[1:] for s in lookup.servers)


def joins_blocks(lookup: Lookup) -> bool:
    """True if a launch, the user's or a tuned one, is cooperative or has clusters."""
    tuned = (step.launch for server in lookup.servers for step in launches_of(server.entry))
    return any(launch.joins_blocks for launch in (lookup.job.kernel.launch, *tuned))


def refuse_lacking(lacking: Mapping[str, bool], form: str, instead: str) -> None:
    """Refuse a result with traits that a format lacks.

    Args:
        lacking: traits that the format cannot hold, each with True if the result has it.

    Raises:
        InvalidInput: the result has one of them; the message names all that it has, and what to use instead.
    """
    found = [trait for trait, holds in lacking.items() if holds]
    if found:
        raise InvalidInput("--as", f"{form} cannot hold {' and '.join(found)}; use {instead}")
