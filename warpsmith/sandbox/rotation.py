"""Which inputs and which outputs each timed launch gets. Runs in the device child.

A launch must not find the answer to its own inputs in its output: a kernel could look there, cheaply,
whether its work is done. A product of matrices, say, is verified with a fraction of the operations that
it takes. So inputs and outputs rotate against each other, and what a launch finds in its output is the
answer to other inputs.
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
    """The pairs of launches one after the other; after the last, the first follows.

    Neighbours in the order in which an output is written differ by an odd number of sets, and so, with an
    even count of sets, in their values, whatever even number of distinct values sets have.

    Args:
        sets: buffer sets; even or 1.
        apart: inputs and outputs move against each other.
    """
    if not apart or sets == 1:
        return tuple(Pair(i, i) for i in range(sets))
    if sets == 2:
        # Sets as large as the cache: the second launch gains nothing from where the first one wrote.
        return Pair(1, 0), Pair(0, 0)
    return tuple(Pair(i, (i + turn) % sets) for turn in range(2) for i in range(sets))


def walked(pairs: Sequence[Pair], sample: int, launches: int) -> list[Pair]:
    """The pairs of a sample of so many launches, where samples walk on."""
    return [pairs[(sample * launches + i) % len(pairs)] for i in range(launches)]


def left_behind(run: Sequence[Pair]) -> list[Pair]:
    """Of the pairs of a sample, those whose answer is still there when it has ended."""
    return list({pair.outputs: pair for pair in run}.values())
