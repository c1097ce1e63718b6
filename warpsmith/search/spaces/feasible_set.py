"""The feasible set: all configurations that the constraints allow.

The set grows parameter by parameter and is filtered as soon as all names of a constraint are bound, so that
the Cartesian product is never built.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Value
from warpsmith.domain.templates.space import Configuration, Constraint, ParameterValue, Space, is_shape
from warpsmith.search.spaces.vectorised_constraints import holds

Codes = NDArray[np.int16]
Bools = NDArray[np.bool_]
_Rows = tuple[Codes, Bools, NDArray[np.float64]]
"""Codes, masks, and random keys by which a sample is chosen."""

LIMIT = 1_000_000
FRONTIER_LIMIT = 8_000_000
FRONTIER = 1_000_000
"""Limit on the rows of a step; more are taken in pieces, each to its end before the next."""
ROUNDS = 50
"""Limit on the draws of a sample."""
SAMPLE = 200_000
ENUMERATE_S = 20.0
"""Seconds after which a part of the set is drawn instead. Sets near the limits take a few. The default budget
is a minute: a search of a part that begins within it finds more than one of the whole that does not."""
PIECE = 8192
"""Number of rows between two looks at the clock. A constraint evaluated row by row takes half a second for
them."""
FIRST_PIECE = 64
"""Number of rows of a sample that are filtered at first; more as long as they take less than `PIECE_S`."""
PIECE_S = 0.1


class _Late(Exception):
    """The time for enumerating has passed."""


@dataclass
class FeasibleSet:
    """Configurations as rows of value indices."""

    space: Space
    codes: Codes
    """[n, parameters]: index of the value of each parameter."""
    allowed: Bools
    """[n, scopes]: workloads on which each configuration may run."""
    exact: bool = True
    """False if the number of allowed configurations is unknown, since the constraints were too slow."""
    total: int | None = None
    """Number of allowed configurations if `codes` is a uniform sample of them."""
    _keys: NDArray[np.bytes_] | None = field(default=None, repr=False)
    _order: NDArray[np.intp] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    @property
    def count(self) -> int:
        """Number of allowed configurations; a lower bound if `exact` is False."""
        return len(self) if self.total is None else self.total

    @cached_property
    def sole_workloads(self) -> NDArray[np.intp] | None:
        """[n]: the workload on which each configuration may run, if each has only one, and they differ or the
        shape is a parameter."""
        if not len(self) or (self.allowed.sum(axis=1) != 1).any():
            return None
        found = self.allowed.argmax(axis=1)
        return found if np.ptp(found) or any(is_shape(p.name) for p in self.space.parameters) else None

    def configuration(self, index: int) -> Configuration:
        """The configuration of a row."""
        row = self.codes[index]
        return {p.name: p.values[code] for p, code in zip(self.space.parameters, row, strict=True)}

    def index(self, configuration: Mapping[str, ParameterValue]) -> int | None:
        """The row of a configuration; None if it is not in the set."""
        codes = []
        for p in self.space.parameters:
            value = configuration.get(p.name)
            found = [
                i
                for i, v in enumerate(p.values)
                if v == value and isinstance(v, bool) == isinstance(value, bool)
            ]
            if not found:
                return None
            codes.append(found[0])
        if not codes:
            return 0 if len(self) else None
        if self._keys is None or self._order is None:
            keys = _keys(self.codes)
            self._order = np.argsort(keys)
            self._keys = keys[self._order]
        key = _keys(np.array([codes], dtype=np.int16))
        at = int(np.searchsorted(self._keys, key)[0])
        if at < self._keys.size and self._keys[at] == key[0]:
            return int(self._order[at])
        return None

    def neighbours(self, index: int) -> NDArray[np.intp]:
        """Rows that differ from a row in exactly one parameter."""
        return np.flatnonzero((self.codes != self.codes[index]).sum(axis=1) == 1)


def enumerate_space(
    space: Space,
    scopes: Sequence[Mapping[str, Value]],
    limit: int = LIMIT,
    seed: int = 0,
    seconds: float = ENUMERATE_S,
) -> FeasibleSet:
    """All configurations that at least one scope allows, or a random sample of them.

    Args:
        scopes: one per workload: its dimensions and the device's limits.
        limit: number of configurations above which a sample is drawn instead.
        seed: seed of that sample.
        seconds: time after which a sample is drawn instead, for half as long at most. It may then be empty,
            though the set is not.

    Raises:
        ExpressionError: a constraint names something unknown.
    """
    until = time.monotonic() + seconds if space.parameters else math.inf
    rng = np.random.default_rng(seed)
    try:
        parts = [_part(space, scopes, *p, max(limit, LIMIT), rng, until) for p in _connected(space)]
    except _Late:
        return _sampled(space, scopes, rng, time.monotonic() + seconds / 2)
    count = _count(parts)
    kept_all = all(len(p.codes) == sum(p.kinds.values()) for p in parts)
    whole = _product(parts) if kept_all and count <= limit else None
    codes, allowed = whole or _drawn(parts, min(SAMPLE, limit, count), rng)
    # Rows follow the order of the declared parameters, not the order of binding.
    codes = codes[:, np.argsort([c for p in parts for c in p.columns])] if space.parameters else codes
    rows = np.lexsort(codes.T[::-1]) if codes.shape[1] else np.arange(codes.shape[0])
    return FeasibleSet(space, np.ascontiguousarray(codes[rows]), allowed[rows], total=count)


@dataclass(frozen=True)
class _Linked:
    """Parameters that constraints connect with each other and with no others."""

    columns: Sequence[int]
    codes: Codes
    """[n, columns]: what the constraints allow, or a uniform sample of it."""
    allowed: Bools
    kinds: Mapping[int, int]
    """How many rows, whether kept or not, are allowed on the same scopes, by the bits of these."""

    def allows(self, scope: int) -> int:
        """Number of rows that a scope allows; 0 if none of them was kept."""
        bit = 1 << (8 * math.ceil(self.allowed.shape[1] / 8) - 1 - scope)
        return sum(n for mask, n in self.kinds.items() if mask & bit) if self.allowed[:, scope].any() else 0


def _connected(space: Space) -> list[tuple[list[int], list[Constraint]]]:
    """Columns in the order of binding, and constraints, by part; those that name no parameter come first."""
    names = [p.name for p in space.parameters]
    needs = [set(c.expression.names) & set(names) for c in space.constraints]
    groups = [{n} for n in names]
    for need in filter(None, needs):
        groups = [*filter(need.isdisjoint, groups), set().union(*(g for g in groups if g & need))]
    order, mine = _binding_order(space), list(zip(space.constraints, needs, strict=True))
    return [
        ([], [c for c, need in mine if not need]),
        *(([c for c in order if names[c] in g], [c for c, need in mine if need & g]) for g in groups),
    ]


def _part(
    space: Space,
    scopes: Sequence[Mapping[str, Value]],
    order: Sequence[int],
    constraints: list[Constraint],
    keep: int,
    rng: np.random.Generator,
    until: float,
) -> _Linked:
    """Rows that connected constraints allow, depth first in pieces; of more than twice `keep` a sample.

    Raises:
        _Late: `until` passed before.
    """
    start = np.ones((1, max(1, len(scopes))), bool)
    stack = [_filter(space, scopes, np.zeros((1, 0), np.int16), start, [], constraints, until)]
    found = [(np.zeros((0, len(order)), np.int16), start[:0], np.zeros(0))]
    kinds, level, held = Counter[int](), 1.0, 0
    while stack:
        _look_at_the_clock(until)
        codes, allowed, pending = stack.pop()
        depth = codes.shape[1]
        if depth == len(order):
            kinds.update(_kinds(allowed))
            keys = rng.random(len(codes))
            kept = keys < level
            found.append((codes[kept], allowed[kept], keys[kept]))
            held += int(kept.sum())
            if held > 2 * keep:
                found, level = _thinned(found, keep)
                held = keep
            continue
        values = len(space.parameters[order[depth]].values)
        step = max(1, FRONTIER // values)
        if codes.shape[0] > step:
            stack += [
                (codes[i : i + step], allowed[i : i + step], pending) for i in range(0, len(codes), step)
            ]
            continue
        column = np.tile(np.arange(values, dtype=np.int16), codes.shape[0])[:, None]
        codes = np.concatenate([np.repeat(codes, values, axis=0), column], axis=1)
        allowed = np.repeat(allowed, values, axis=0)
        stack.append(_filter(space, scopes, codes, allowed, order[: depth + 1], pending, until))
    every, masks, _ = (np.concatenate(part) for part in zip(*found, strict=True))
    return _Linked(order, every, masks, kinds)


def _thinned(found: Sequence[_Rows], keep: int) -> tuple[list[_Rows], float]:
    """The rows with the lowest keys, and the key below which they are."""
    level = float(np.partition(np.concatenate([k for *_, k in found]), keep)[keep])
    return [(c[k < level], a[k < level], k[k < level]) for c, a, k in found], level


def _kinds(allowed: Bools) -> dict[int, int]:
    """How many rows have the same mask, by its bits."""
    packed = np.packbits(allowed, axis=1)
    masks, counts = np.unique(packed.view(f"V{packed.shape[1]}"), return_counts=True)
    return {int.from_bytes(m.tobytes()): int(n) for m, n in zip(masks, counts, strict=True)}


def _count(parts: Sequence[_Linked]) -> int:
    """Number of configurations that at least one scope allows in every part."""
    counts = {-1: 1}
    for part in parts:
        joint = Counter[int]()
        for (a, n), (b, m) in itertools.product(counts.items(), part.kinds.items()):
            joint[a & b] += n * m
        counts = {mask: n for mask, n in joint.items() if mask}
    return sum(counts.values())


def _product(parts: Sequence[_Linked]) -> tuple[Codes, Bools] | None:
    """All rows; None if a step has too many although few remain."""
    codes, allowed = parts[0].codes, parts[0].allowed
    for part in parts[1:]:
        one, other = len(codes), len(part.codes)
        if one * other > FRONTIER_LIMIT:
            return None
        allowed = np.repeat(allowed, other, axis=0) & np.tile(part.allowed, (one, 1))
        codes = np.concatenate([np.repeat(codes, other, axis=0), np.tile(part.codes, (one, 1))], axis=1)
        keep = allowed.any(axis=1)
        codes, allowed = codes[keep], allowed[keep]
    return codes, allowed


def _drawn(parts: Sequence[_Linked], wanted: int, rng: np.random.Generator) -> tuple[Codes, Bools]:
    """Distinct configurations, each as likely as any other.

    A scope is drawn by how many it allows, then a row of each part that it allows; a configuration that m
    scopes allow, which would come m times as often, is kept once in m times.
    """
    scopes = parts[0].allowed.shape[1]
    share = [math.prod(p.allows(scope) for p in parts) for scope in range(scopes)]
    found, masks = np.zeros((0, sum(len(p.columns) for p in parts)), np.int16), np.zeros((0, scopes), bool)
    for _ in range(ROUNDS if any(share) else 0):
        for scope, draws in enumerate(rng.multinomial(wanted, [n / sum(share) for n in share])):
            if not draws:
                continue
            rows = [(p, rng.choice(np.flatnonzero(p.allowed[:, scope]), draws)) for p in parts]
            mask = np.logical_and.reduce([p.allowed[r] for p, r in rows])
            once = rng.random(draws) * mask.sum(axis=1) < 1.0
            found = np.concatenate([found, np.concatenate([p.codes[r] for p, r in rows], axis=1)[once]])
            masks = np.concatenate([masks, mask[once]])
        _, first = np.unique(_keys(found), return_index=True)
        found, masks = found[first], masks[first]
        if len(found) >= wanted:
            break
    some = rng.permutation(len(found))[:wanted]
    return found[some], masks[some]


def _look_at_the_clock(until: float) -> None:
    if time.monotonic() > until:
        raise _Late


def _binding_order(space: Space) -> list[int]:
    """Order of parameters in which those that complete a constraint soonest come first."""
    names = [p.name for p in space.parameters]
    needs = [set(c.expression.names) & set(names) for c in space.constraints]
    sizes = {p.name: len(p.values) for p in space.parameters}
    bound: list[str] = []
    while len(bound) < len(names):
        left = [n - set(bound) for n in needs if n - set(bound)]
        if not left:
            bound += [n for n in names if n not in bound]
            break
        nearest = min(left, key=lambda missing: (np.prod([sizes[m] for m in missing]), sorted(missing)))
        bound += sorted(nearest, key=names.index)
    return [names.index(n) for n in bound]


def _filter(
    space: Space,
    scopes: Sequence[Mapping[str, Value]],
    codes: Codes,
    allowed: Bools,
    placed: Sequence[int],
    pending: list[Constraint],
    until: float,
) -> tuple[Codes, Bools, list[Constraint]]:
    """The rows that every constraint allows whose names are bound, and the other constraints.

    Raises:
        _Late: `until` passed before.
    """
    names = {p.name for p in space.parameters}
    bound = {space.parameters[c].name for c in placed}
    ready = [c for c in pending if set(c.expression.names) & names <= bound]
    for constraint in ready:
        arrays = {
            space.parameters[column].name: parameter_values(space, column)[codes[:, k]]
            for k, column in enumerate(placed)
            if space.parameters[column].name in constraint.expression.names
        }
        # One without names of a scope has the same answer in all of them.
        own = set(constraint.expression.names) <= names
        columns = [
            _holds(constraint, {**scope, **arrays}, codes.shape[0], until)
            for scope in ([] if own else scopes) or ({},)
        ]
        allowed = allowed & np.stack(columns, axis=1)
        keep = allowed.any(axis=1)
        codes, allowed = codes[keep], allowed[keep]
    return codes, allowed, [c for c in pending if c not in ready]


def _holds(constraint: Constraint, scope: Mapping[str, Any], length: int, until: float) -> Bools:
    """[length]: whether rows meet a constraint, piece by piece."""
    found = np.zeros(length, bool)
    for start in range(0, max(1, length), PIECE):  # no rows: names are looked at all the same
        _look_at_the_clock(until)
        piece = slice(start, start + PIECE)
        values = {n: v[piece] if isinstance(v, np.ndarray) else v for n, v in scope.items()}
        found[piece] = holds(constraint.expression, values, found[piece].size)
    return found


def parameter_values(space: Space, column: int) -> NDArray[np.generic]:
    """The values of one parameter, as an array to be indexed by codes."""
    values = space.parameters[column].values
    if any(isinstance(v, str) for v in values):
        return np.array([str(v) for v in values])
    return np.array(values)


def _sampled(
    space: Space, scopes: Sequence[Mapping[str, Value]], rng: np.random.Generator, until: float
) -> FeasibleSet:
    """A random sample of a set that takes too long: uniform draws, of which the allowed ones are kept."""
    sizes = [len(p.values) for p in space.parameters]
    found = np.zeros((0, len(sizes)), np.int16)
    masks = np.zeros((0, max(1, len(scopes))), bool)
    drawn, rows = 0, FIRST_PIECE
    while len(found) < SAMPLE and drawn < ROUNDS * SAMPLE and (drawn == 0 or time.monotonic() < until):
        began = time.monotonic()
        draw = rng.integers(0, sizes, (rows, len(sizes)), dtype=np.int16)
        ok = np.ones((rows, masks.shape[1]), bool)
        # A piece that was begun is finished, so that something is found however slow a constraint is.
        codes, ok, _ = _filter(space, scopes, draw, ok, range(len(sizes)), list(space.constraints), math.inf)
        found, first = np.unique(np.concatenate([found, codes]), axis=0, return_index=True)
        masks = np.concatenate([masks, ok])[first]
        drawn += rows
        if time.monotonic() - began < PIECE_S:
            rows = min(2 * rows, SAMPLE)
    some = rng.permutation(len(found))[:SAMPLE]
    return FeasibleSet(space, found[some], masks[some], exact=False)


def _keys(codes: Codes) -> NDArray[np.bytes_]:
    shifted = np.ascontiguousarray((codes + 1).astype(">i2"))
    return shifted.view(f"S{2 * codes.shape[1]}").reshape(-1)
