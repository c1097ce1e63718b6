"""A call that launches a kernel, before its expressions are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.source.lexing.tokens import Token


@dataclass(frozen=True)
class LaunchCall:
    """Tokens of a launch."""

    at: int
    """Index of the token at which variables have the values that count."""
    grid: Sequence[Token]
    block: Sequence[Token]
    shared: Sequence[Token] = ()
    arguments: Mapping[int, Sequence[Token]] | None = None
    """Tokens of the arguments that are passed, by position; None if they are unknown."""
    template_arguments: tuple[str, ...] = ()
    counts_threads: bool = False
    """True if `grid` counts threads instead of blocks."""
    axes: int = 3
    is_complete: bool = True
    """True if `arguments` has all that are passed."""
    places: Mapping[int, int] = field(default_factory=dict)
    """Tokens at which the values of arguments count, by position, where that is not `at`."""
