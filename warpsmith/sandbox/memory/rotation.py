"""Input and output sets of each timed launch. Runs in the device child.

A launch must not find the result for its own inputs in its output, because a kernel could cheaply check
whether its work is already done: a matrix product, for example, is verified with a fraction of the operations
that it takes. Inputs and outputs therefore rotate against each other, and a launch finds the result for other
inputs in its output.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Pair:
    """Buffer sets of one launch."""

    inputs: int
    outputs: int


@cache
def rotation(sets: int, apart: bool) -> tuple[Pair, ...]:
    """The pairs of consecutive launches; after the last, the first follows.

    Launches that write the same output one after the other differ by an odd number of sets in their inputs.
    Since the number of sets is even, they also differ in values, for every even number of distinct values.

    Args:
        sets: number of buffer sets; even or 1.
        apart: inputs and outputs move against each other.
    """
    if not apart or sets == 1:
        return tuple(Pair(i, i) for i in range(sets))
    if sets == 2:
        # Sets as large as the cache: the second launch gains nothing from the output of the first.
        return Pair(1, 0), Pair(0, 0)
    return tuple(Pair(i, (i + turn) % sets) for turn in range(2) for i in range(sets))


def walked(pairs: Sequence[Pair], sample: int, launches: int) -> list[Pair]:
    """The pairs of sample number `sample` with this number of launches, if samples continue each other."""
    return [pairs[(sample * launches + i) % len(pairs)] for i in range(launches)]


def left_behind(run: Sequence[Pair]) -> list[Pair]:
    """The pairs of a sample whose result is still in its output after the sample."""
    return list({pair.outputs: pair for pair in run}.values())
