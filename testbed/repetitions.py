"""How often a test repeats itself in the gate, `make test`, and at night, `make test-nightly`.

At night everything runs. The gate takes a fixed share of what repeats: of generated examples, and of cases
that go through the same property. Hostile kernels are no repetitions: the gate runs each.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hypothesis import settings

Case = TypeVar("Case")

VARIABLE = "WARPSMITH_NIGHTLY"
"""Environment variable that is `1` at night."""
PORTION = 5
"""The gate takes one of so many."""
LEAST = 10
"""Repetitions below which the gate does not go, if there are as many at night."""


def nightly() -> bool:
    """Whether this run is one in which everything runs."""
    return os.environ.get(VARIABLE) == "1"


def repetitions(count: int, least: int = LEAST) -> int:
    """How often to repeat in this run what repeats `count` times at night."""
    return count if nightly() else max(min(count, least), count // PORTION)


def examples(count: int, least: int = LEAST) -> "settings":
    """Settings of a property that has so many examples at night, without a deadline for each."""
    # A GPU node that runs `tests/gpu` need not have it.
    from hypothesis import settings

    return settings(max_examples=repetitions(count, least), deadline=None)


def share(cases: Iterable[Case], kinds: Callable[[Case], Iterable[Hashable]]) -> Sequence[Case]:
    """The cases of this run: all at night; in the gate every fifth, and one of each kind not among them.

    Args:
        cases: in an order that is the same in every process.
        kinds: what a case is an example of; the gate has one of each at least.
    """
    given = list(cases)
    if nightly():
        return given
    taken = set(range(0, len(given), PORTION))
    seen = {kind for n in taken for kind in kinds(given[n])}
    for n, case in enumerate(given):
        if new := set(kinds(case)) - seen:
            taken.add(n)
            seen |= new
    return [given[n] for n in sorted(taken)]
