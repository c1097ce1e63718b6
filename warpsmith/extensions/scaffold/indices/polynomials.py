"""Polynomials with integer coefficients over named sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warpsmith.source.tree.work_limit import spend

_MOST_TERMS = 48
_COST = 10
"""Steps of work that one polynomial stands for: making it takes as long as walking over ten nodes."""

Monomial = tuple[str, ...]
"""Names in order, each as often as its power."""


class Unknown(Exception):
    """Nothing sure can be said about a value."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of names."""

    terms: tuple[tuple[Monomial, int], ...] = ()
    """Monomials in order, each with a coefficient that is not 0."""

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> "Polynomial":
        """The sum of these terms.

        Raises:
            Unknown: there are too many of them.
        """
        spend(_COST + len(terms))
        if len(terms) > _MOST_TERMS:
            raise Unknown
        return Polynomial(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @staticmethod
    def number(value: int) -> "Polynomial":
        """A constant."""
        return Polynomial.of({(): value})

    @staticmethod
    def name(name: str) -> "Polynomial":
        """Polynomial of a single name."""
        return Polynomial.of({(name,): 1})

    def __add__(self, other: "Polynomial") -> "Polynomial":
        found = dict(self.terms)
        for m, c in other.terms:
            found[m] = found.get(m, 0) + c
        return Polynomial.of(found)

    def __neg__(self) -> "Polynomial":
        return Polynomial(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + -other

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        found: dict[Monomial, int] = {}
        spend(len(self.terms) * len(other.terms))
        for m, c in self.terms:
            for n, d in other.terms:
                key = tuple(sorted(m + n))
                found[key] = found.get(key, 0) + c * d
        return Polynomial.of(found)

    @property
    def names(self) -> frozenset[str]:
        """Names that occur."""
        return frozenset(name for m, _ in self.terms for name in m)

    @property
    def constant(self) -> int | None:
        """The value, if no name occurs."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def powers_of(self, name: str) -> dict[int, "Polynomial"]:
        """Coefficients by the power of a name."""
        found: dict[int, dict[Monomial, int]] = {}
        for m, c in self.terms:
            rest = tuple(n for n in m if n != name)
            found.setdefault(len(m) - len(rest), {})[rest] = c
        return {power: Polynomial.of(terms) for power, terms in found.items()}

    def substituted(self, name: str, value: "Polynomial") -> "Polynomial":
        """The polynomial with a value in the place of a name."""
        total = Polynomial()
        for power, rest in self.powers_of(name).items():
            if power > 4:
                raise Unknown
            product = rest
            for _ in range(power):
                product = product * value
            total = total + product
        return total

    def divided(self, other: "Polynomial") -> "Polynomial | None":
        """The quotient by a single term; None if one of the terms is no multiple of it."""
        if len(other.terms) != 1:
            return None
        ((m, c),) = other.terms
        found: dict[Monomial, int] = {}
        for n, d in self.terms:
            rest = without(n, m)
            if rest is None or d % c:
                return None
            found[rest] = d // c
        return Polynomial.of(found)

    def is_nonnegative(self, least: Callable[[str], int]) -> bool:
        """True if the value is surely not below 0.

        Args:
            least: the smallest value of a name, 0 or 1.
        """
        if all(c >= 0 for _, c in self.terms):
            return True
        shifted = self
        for name in sorted(self.names):
            if least(name):
                shifted = shifted.substituted(name, Polynomial.of({(name,): 1, (): 1}))
        return all(c >= 0 for _, c in shifted.terms)

    def text(self) -> str:
        """The value as an expression of a job."""
        ordered = sorted(self.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0]))
        found = ""
        for m, c in ordered:
            factors = [*((str(abs(c)),) if abs(c) != 1 or not m else ()), *m]
            product = " * ".join(factors)
            found += (f" {'-' if c < 0 else '+'} " if found else "-" if c < 0 else "") + product
        return found or "0"


def without(m: Monomial, divisor: Monomial) -> Monomial | None:
    """The quotient of two monomials; None if there is none."""
    rest = list(m)
    for name in divisor:
        if name not in rest:
            return None
        rest.remove(name)
    return tuple(rest)
