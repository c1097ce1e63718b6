"""The largest value of an integer of a kernel, as an expression over its sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.extensions.scaffold.indices.guards import Guard
from warpsmith.extensions.scaffold.indices.polynomials import Monomial, Polynomial, Unknown, without
from warpsmith.extensions.scaffold.indices.values import BLOCKS, VARYING, IndexValues, Range
from warpsmith.source.tree.work_limit import spend

_STEPS = 24
_DEEPEST = 6


@dataclass
class Largest:
    """Bounds of values.

    Args:
        extents: threads or blocks along an axis, rounded up to `round_to` of them, by the name of its number
            of blocks.
    """

    values: IndexValues
    extents: Mapping[str, tuple[Polynomial, int]] = field(default_factory=dict)

    def least(self, name: str) -> int:
        """The smallest value of a name that is assumed: 1 for sizes, 0 for what varies and for quotients."""
        return int(name[0] not in (VARYING, "("))

    def exact(self, p: Polynomial) -> Polynomial:
        """The value if every quotient of sizes is without remainder."""
        for _ in range(4):
            for name, (dividend, divisor) in self.values.quotients.items():
                parts = p.powers_of(name) if name in p.names else {}
                whole = parts[1].divided(divisor) if set(parts) in ({0, 1}, {1}) else None
                if whole is not None:
                    p = parts.get(0, Polynomial()) + whole * dividend
        return p

    def is_nonnegative(self, p: Polynomial) -> bool:
        """True if a value is surely not below 0."""
        if p.is_nonnegative(self.least):
            return True
        for name, (size, threads) in self.extents.items():
            # The number of blocks times their threads is not below the extent.
            parts = p.powers_of(name)
            whole = parts.get(1, Polynomial()).divided(Polynomial.number(threads))
            if set(parts) != {0, 1} or whole is None or not whole.is_nonnegative(self.least):
                continue
            if (parts[0] + whole * size).is_nonnegative(self.least):
                return True
        return False

    def of(
        self, p: Polynomial, guards: Sequence[Guard], used: set[str] | None = None, depth: int = 0
    ) -> Polynomial:
        """A bound of a value over sizes only.

        Args:
            guards: what holds, the nearest first.
            used: takes the words of the conditions that the bound follows from.

        Raises:
            Unknown: there is none.
        """
        if depth > _DEEPEST:
            raise Unknown
        used = set() if used is None else used
        left = list(guards)
        for _ in range(_STEPS):
            spend(2)
            if not any(n[0] == VARYING for n in p.names):
                return p
            found = self._equal(p)
            if found is None:
                hits = ((g, q) for g in left if (q := replaced(p, g.small, g.large)))
                guard, found = next(hits, (None, None))
                if guard is not None:
                    left.remove(guard)
                    used.add(guard.words)
            p = self._by_range(p, guards, used, depth) if found is None else found
        raise Unknown

    def _equal(self, p: Polynomial) -> Polynomial | None:
        """With a quotient and its remainder put together again."""
        return next((q for small, large in self.values.equal if (q := replaced(p, small, large))), None)

    def _by_range(self, p: Polynomial, guards: Sequence[Guard], used: set[str], depth: int) -> Polynomial:
        """With the last of the values that vary replaced by a bound of its own."""
        varying = (n for n in p.names if n[0] == VARYING)
        name = max(varying, key=lambda n: (self.values.ranges[n].order if n in self.values.ranges else 0, n))
        known = self.values.ranges.get(name, Range())
        parts = p.powers_of(name)
        factors = [parts[power] for power in parts if power]
        if all(self.is_nonnegative(f) for f in factors):
            return p.substituted(name, self._upper(known, guards, used, depth))
        if known.lower is not None and all(self.is_nonnegative(-f) for f in factors):
            return p.substituted(name, known.lower)
        raise Unknown

    def _upper(self, known: Range, guards: Sequence[Guard], used: set[str], depth: int) -> Polynomial:
        if known.divided is not None:
            dividend, divisor = known.divided
            return self.quotient(self.of(dividend, guards, used, depth + 1), divisor)
        if not known.upper:
            raise Unknown
        if len(known.upper) == 1:
            return known.upper[0]
        found: list[Polynomial] = []
        for bound in known.upper:
            try:
                found.append(self.of(bound, guards, used, depth + 1))
            except Unknown:
                if not known.any_bound:
                    raise
        if not found:
            raise Unknown
        if not known.any_bound:
            return self.larger(found)
        smallest = (p for p in found if all(self.is_nonnegative(q - p) for q in found))
        return next(smallest, found[0])

    def quotient(self, largest: Polynomial, divisor: Polynomial) -> Polynomial:
        """The largest quotient of a dividend."""
        one = Polynomial.number(1)
        exact = (largest + one).divided(divisor)
        if exact is not None:
            return exact - one
        return self.values.quotient(largest, divisor)

    def larger(self, found: Sequence[Polynomial]) -> Polynomial:
        """The one that is not below the others.

        Raises:
            Unknown: no one surely is.
        """
        highest: dict[tuple[tuple[Monomial, int], ...], Polynomial] = {}
        for p in found:
            sizes = tuple(t for t in p.terms if t[0])
            best = highest.get(sizes)
            if best is None or dict(p.terms).get((), 0) > dict(best.terms).get((), 0):
                highest[sizes] = p
        largest = next(iter(highest.values()))
        for p in highest.values():
            largest = p if self.is_nonnegative(p - largest) else largest
        if all(self.is_nonnegative(largest - p) for p in highest.values()):
            return largest
        raise Unknown


def replaced(p: Polynomial, small: Polynomial, large: Polynomial) -> Polynomial | None:
    """The value with a multiple of `small` replaced by that of `large`; None if it has none."""
    first, size = small.terms[0]
    have = dict(p.terms)
    for m, c in p.terms:
        rest = without(m, first)
        if rest is None or c % size or c // size < 0:
            continue
        factor = Polynomial.of({rest: c // size})
        whole = small * factor
        if all(have.get(n, 0) == d for n, d in whole.terms):
            return p - whole + large * factor
    return None


def is_size(p: Polynomial) -> bool:
    """True if nothing in a value varies, and the launch does not decide it."""
    return not any(n[0] in (VARYING, BLOCKS) or BLOCKS in n for n in p.names)
