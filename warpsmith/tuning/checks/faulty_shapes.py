"""Shapes on which the user's kernel will probably end its process, from those on which it did.

A kernel that reads several elements at once faults wherever a row does not begin on a multiple of them. Each
such fault costs a process, and says the same as the first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST_ALIGNED = 64
"""Greatest power of two that counts as a divisor of an extent."""


@dataclass
class FaultyShapes:
    """Learns from faults by the powers of two that divide extents.

    Args:
        listed: dimensions of the workloads, on which the kernel does not fault.
    """

    listed: Iterable[Mapping[str, int]]
    known: list[dict[str, int]] = field(default_factory=list)
    """Dimensions of the shapes that faulted."""
    left_out: int = 0
    """Number of shapes that were not tried."""
    _suspects: list[dict[str, int]] = field(default_factory=list)
    """For each fault, the divisors of the extents that are less divisible than in every workload."""

    def __post_init__(self) -> None:
        self._usual: dict[str, int] = {}
        for dimensions in self.listed:
            for name, extent in dimensions.items():
                self._usual[name] = min(self._usual.get(name, MOST_ALIGNED), _divisor(extent))
        known, self.known = self.known, []
        for dimensions in known:
            self.add(dimensions)

    def add(self, dimensions: Mapping[str, int]) -> None:
        """Note a shape on which the kernel ended its process."""
        self.known.append(dict(dimensions))
        divisors = {name: _divisor(extent) for name, extent in dimensions.items()}
        odd = {name: d for name, d in divisors.items() if d < self._usual.get(name, 1)}
        if odd:
            self._suspects.append(odd)

    def leaves_out(self, dimensions: Mapping[str, int]) -> bool:
        """True if all extents that may have caused a fault are as odd here; counts the shape then."""
        divisors = {name: _divisor(extent) for name, extent in dimensions.items()}
        found = any(all(divisors.get(n, 1) <= d for n, d in odd.items()) for odd in self._suspects)
        self.left_out += found
        return found


def _divisor(extent: int) -> int:
    return min(MOST_ALIGNED, extent & -extent)
